# SPDX-License-Identifier: MIT
"""What type checkers see of the package: every public name, and a user's program without a complaint."""
import ast
import os
import subprocess
import sys

import pytest

import tulle

USER = '''
from __future__ import annotations
import numpy as np
import tulle

A = tulle.gallery("poisson2d:10")
C = tulle.matmul(A, A, threads=2, policy="auto")
with tulle.Context("cpu", threads=1) as ctx:
    D = tulle.Plan(A, A)(A.data, A.data)
    seconds: float = ctx.stats().seconds
names: list[str] = [d.name for d in tulle.devices()]
forecast: tulle.Forecast = tulle.estimate(A, A)
text: str = tulle.explain(A, A)
Y = tulle.spmm(A, np.ones((100, 3)), alpha=2.0)
Z = tulle.SpmmPlan(A)(np.ones((100, 3)))

def told(stage: str, fraction: float) -> bool:
    return False

try:
    tulle.matmul(A, A, progress=told)
except tulle.TulleError as error:
    print(error.status, str(error))
'''


def test_every_public_name_is_exported():
    """In a package with py.typed only "import X as X" is public."""
    with open(tulle.__file__) as f:
        tree = ast.parse(f.read())
    block = next(n for n in tree.body if isinstance(n, ast.If) and getattr(n.test, "id", "") == "TYPE_CHECKING")
    seen = {name.asname: node.module for node in block.body for name in node.names if name.asname == name.name}
    assert seen == tulle._WHERE
    assert sorted(seen) == tulle.__all__


def test_a_program_passes_a_strict_check(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "user.py"
    program.write_text(USER)
    root = os.path.dirname(os.path.dirname(tulle.__file__))
    run = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache"),
                          str(program)], capture_output=True, text=True, env={**os.environ, "MYPYPATH": "" if "site-packages" in root else root})
    assert run.returncode == 0, run.stdout + run.stderr
