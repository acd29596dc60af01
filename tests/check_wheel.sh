#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_wheel.sh ROOT BUILD - the wheel as users get it: built, installed into an empty virtual environment,
# and tested there with NumPy only; then with SciPy its tests and examples, and SciPy's own tests of products
# with `@` through tulle; and a source distribution, unpacked elsewhere and built.
set -euo pipefail
root=${1:?usage: check_wheel.sh ROOT BUILD}
work=$2/wheel
unset TULLE_LIBRARY PYTHONPATH
export BUILD=$2
passed=0 failed=0

step() { echo "-- $1: $SECONDS s"; }
count() {                       # count COMMAND...: adds its numbers of tests
    local line status=0
    "$@" >"$work/log" 2>&1 || status=$?
    line=$(grep -aE '^[0-9]+ passed, [0-9]+ failed$' "$work/log" | tail -n 1)
    if [ -z "$line" ] || { [ "$status" -ne 0 ] && [[ $line == *" 0 failed" ]]; }; then
        tail -n 60 "$work/log"
        failed=$((failed + 1))
        return
    fi
    read -r p _ f _ <<<"$line"
    [ "$f" -eq 0 ] || tail -n 60 "$work/log"
    passed=$((passed + p)) failed=$((failed + f))
}

step "the wheel"
"$root/scripts/wheel.sh"
rm -rf "$work/venv"
"${PYTHON:-python3}" -m venv "$work/venv"
python=$work/venv/bin/python
pip=("$python" -m pip install --quiet --disable-pip-version-check)
step "installed, with NumPy alone"
"${pip[@]}" "$work"/*.whl
cd "$work"                      # so that python/ of the repository is not imported
"$python" -c 'import tulle
A = tulle.gallery("poisson2d:50")
C = A @ A
assert tulle.verify(A, A, C) < 1e-14 and C.nnz == 31504, C
print("a product with NumPy alone:", C)'
step "its tests and examples"
"${pip[@]}" scipy pytest hypothesis pooch mypy
site=$("$python" -c 'import tulle, os; print(os.path.dirname(tulle.__file__))')
count "$python" -m pytest -q -p no:cacheprovider -W ignore::PendingDeprecationWarning --doctest-modules "$root/python/tests" "$site"
step "SciPy's tests"
export PYTHONPATH=$root/python/tests
count "$python" -m pytest -q -p no:cacheprovider -p scipy_through_tulle --pyargs scipy.sparse.tests.test_base \
    -k "mul or dot or pow or arith or rmat"
grep -a '^tulle made' "$work/log" || true
unset PYTHONPATH
step "a source distribution"
rm -rf "$work/sdist" && mkdir "$work/sdist"
"$work/tools/bin/python" -m build --sdist --outdir "$work/sdist" "$root/python" >"$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }
CMAKE_ARGS="${CMAKE_FLAGS:-} -DTULLE_ISAS=base -DTULLE_IMAGES=OFF" "$python" -m pip wheel --quiet --disable-pip-version-check --no-deps \
    -w "$work/sdist" "$work"/sdist/*.tar.gz
"${pip[@]}" --force-reinstall --no-deps "$work"/sdist/*.whl
"$python" -c 'import tulle; A = tulle.gallery("cage5"); print("built from a source distribution:", tulle.verify(A, A, tulle.matmul(A, A)))'
step "done"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
