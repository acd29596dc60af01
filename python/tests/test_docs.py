# SPDX-License-Identifier: MIT
"""The code of docs/python.md runs, from top to bottom, and what it prints is what stands there."""
import contextlib
import io
import os
import re
from pathlib import Path

import pytest

PAGE = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "python.md")


@pytest.mark.filterwarnings("ignore")
def test_page():
    import scipy.sparse
    if not hasattr(scipy.sparse, "diags_array"):
        pytest.skip("the page is written for SciPy 1.11 and newer")
    text = Path(PAGE).read_text()
    space, printed, ran = {}, io.StringIO(), 0
    try:
        import torch
        space["torch"] = torch
    except ImportError:
        pass
    for code in re.findall(r"```python\n(.*?)```", text, re.S):
        if "torch" in code and "torch" not in space:
            continue
        with contextlib.redirect_stdout(printed):
            exec(code, space)
        ran += 1
    assert ran >= 6
    for line in printed.getvalue().splitlines():
        assert line in text, line
    for name in re.findall(r"\]\((pictures/[^)]+)\)", text):
        assert os.path.getsize(os.path.join(os.path.dirname(PAGE), name)) > 1000


def test_every_public_function_has_an_example():
    import inspect

    import tulle
    missing = [name for name in tulle.__all__ if inspect.isfunction(getattr(tulle, name)) and ">>>" not in getattr(tulle, name).__doc__]
    assert not missing
