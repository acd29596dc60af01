# SPDX-License-Identifier: MIT
"""What the tests share (plain.py), and the line that tells how many there were."""
import pytest
from plain import DTYPES, INDICES, same, whole  # noqa: F401


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter):
    """The line that tests/count.sh looks for."""
    count = {word: len(terminalreporter.stats.get(word, [])) for word in ("passed", "failed", "error")}
    terminalreporter.write_line(f"{count['passed']} passed, {count['failed'] + count['error']} failed")
