#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# python.sh ROOT LIBRARY VENV - the tests of the Python package against the library of this build, which is not built again
# (TULLE_LIBRARY).  They need NumPy, SciPy and pytest: of $PYTHON, of python3 or of the system's; where none has them, of a
# virtual environment in the folder VENV, which is made then.
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
