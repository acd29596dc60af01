#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# python.sh ROOT LIBRARY VENV - runs the tests of the Python package with the library of this build
# (TULLE_LIBRARY), which is not built again.  They need NumPy, SciPy and pytest: of $PYTHON, of python3 or of
# the system's Python; if none has them, a virtual environment is created in the folder VENV.
set -euo pipefail
root=${1:?usage: python.sh ROOT LIBRARY VENV} library=$2 venv=$3

fits() { "$1" -c 'import sys, numpy, scipy.sparse, pytest; sys.exit(sys.version_info < (3, 9))' >/dev/null 2>&1; }

python=
for candidate in ${PYTHON:+"$PYTHON"} python3 /usr/bin/python3 "$venv/bin/python"; do
    if fits "$candidate"; then python=$candidate; break; fi
done
if [ -z "$python" ]; then
    echo "no Python here has NumPy, SciPy and pytest: they go to $venv"
    python3 -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check numpy scipy pytest
    python=$venv/bin/python
fi
"$python" -c 'import sys, numpy, scipy; print("Python", sys.version.split()[0], "NumPy", numpy.__version__, "SciPy", scipy.__version__)'
export TULLE_LIBRARY=$library PYTHONPATH=$root/python PYTHONDONTWRITEBYTECODE=1
exec "$python" -m pytest -q -p no:cacheprovider -W ignore::PendingDeprecationWarning "$root/python/tests" "$root/python/tulle" --doctest-modules
