# SPDX-License-Identifier: MIT
#
# read_scipy.py FILE THREADS REPEAT - times SciPy's fast_matrix_market reader, for bench_read.c.  Prints
# "SECONDS SECONDS_TO_CSR NNZ VERSION", the best of REPEAT, or one line that says what is missing.
import sys
import time

try:
    import scipy
    import scipy.io
    from scipy.io import _fast_matrix_market as fmm
except ImportError as error:
    print("missing", error)
    sys.exit(1)

path, threads, repeat = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
fmm.PARALLELISM = threads
best, best_csr, nnz = 1e30, 1e30, 0
for _ in range(repeat):
    start = time.perf_counter()
    matrix = scipy.io.mmread(path)
    read = time.perf_counter()
    csr = matrix.tocsr()
    done = time.perf_counter()
    best, best_csr, nnz = min(best, read - start), min(best_csr, done - start), csr.nnz
    del matrix, csr
print(best, best_csr, nnz, scipy.__version__)
