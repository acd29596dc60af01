# SPDX-License-Identifier: MIT
"""A plugin of pytest for SciPy's own tests: SciPy's @ goes through tulle while they run.

    python -m pytest -p scipy_through_tulle --pyargs scipy.sparse.tests.test_base -k "mul or dot or pow"

At the end it tells how many products tulle made; none at all is a failure.
"""
import pytest

import tulle
from tulle import _install

_made = 0
_matmul = _install.matmul


def _counted(A, B):
    global _made
    C = _matmul(A, B)
    _made += 1
    return C


def pytest_configure(config):
    _install.matmul = _counted
    tulle.install()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if _made == 0:
        session.exitstatus = 1


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter):
    count = {word: len(terminalreporter.stats.get(word, [])) for word in ("passed", "failed", "error")}
    terminalreporter.write_line(f"tulle made {_made} products")
    terminalreporter.write_line(f"{count['passed']} passed, {count['failed'] + count['error'] + (_made == 0)} failed")
