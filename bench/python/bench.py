# SPDX-License-Identifier: MIT
"""bench.py - compares the Python package with its peers, in one process and one run, with the same number of
threads.

    bench.py [--threads 2] [--only PART,PART] [--seconds 0.5] [--no-spmm] [--no-products] [--cold]
             [--cpu-time]

C = A*B over the suite of bench_spgemm.c, and Y = A*X with 8, 32 and 128 columns. The libraries take turns,
one product each, until each has run for --seconds and at least three times; the median counts. The first
result of each is checked. Between turns the process sleeps for 8 ms, so that threads of one library that
still spin do not disturb the next. Y = A*X takes only about a millisecond, and a processor that was idle
needs longer than that to reach its full clock rate: there a turn is at least two products and twelve
milliseconds, of which the last product counts, and MKL's threads spin for 4 ms instead of 200; with --cold it
is done as for C = A*B. Freeing a result is not timed. --cpu-time measures the CPU time of all threads instead
of the elapsed time, for machines with other load.
"""
import argparse
import itertools
import os
import re
import subprocess
import sys
import time

import numpy as np
import scipy.sparse as sp
from peers import Fresh, GraphBLAS, Mkl, Scipy, Torch, Tulle

import tulle

HERE = os.path.dirname(os.path.abspath(__file__))
SPMM = {"cage12": "cage:12", "rmat_14": "rmat:14", "er_100k": "er:100000,per_row=8", "s3dkq4m2": "s3dkq4m2",
        "poisson2d": "poisson2d:700"}
wrong = 0
clock = time.perf_counter


def suite():
    """(name, recipe) of the products of `make bench`, from its own table."""
    text = open(os.path.join(HERE, "..", "bench_spgemm.c")).read()
    found = re.findall(r'^    \{"(\S+)",\s+"([^"]+)", (?:true|false)\},', text, re.M)
    assert len(found) > 30, "the table of bench_spgemm.c was not found"
    return found


def operands(recipe):
    """The two factors, with random values, as in bench/operands.c."""
    if recipe.startswith("multigrid:"):
        return multigrid(recipe[len("multigrid:"):])
    A = sp.csr_array(tulle.gallery(recipe + ("," if ":" in recipe else ":") + "values=random"))
    return (A, A) if A.shape[0] == A.shape[1] else (A, sp.csr_array(A.T.tocsr()))


def multigrid(product, edge=64, block=3):
    A = sp.csr_array(tulle.gallery(f"poisson3d:{edge}"))
    x = np.arange(edge) // block
    z, y, x = np.meshgrid(x, x, x, indexing="ij")
    blocks = (edge + block - 1) // block
    aggregate = ((z * blocks + y) * blocks + x).ravel().astype("int32")
    size = np.bincount(aggregate)
    n = edge**3
    T = sp.csr_array((1 / np.sqrt(size[aggregate]), aggregate, np.arange(n + 1, dtype="int32")),
                     shape=(n, blocks**3))
    S = A.copy()
    diagonal = A.diagonal()
    rows = np.repeat(np.arange(n), np.diff(A.indptr))
    S.data = (A.indices == rows) - 2 / 3 * A.data / diagonal[rows]
    if product == "S*T":
        return S, T
    P = tulle.matmul(S, T)
    return (A, P) if product == "A*P" else (sp.csr_array(P.T.tocsr()), tulle.matmul(A, P))


def turn(run, warm):
    """Seconds of the last of at least two products in `warm` seconds; warm = 0: of a single product."""
    begin = clock()
    for runs in itertools.count(1):
        start = clock()
        result = run()
        end = clock()
        del result
        if warm == 0 or runs > 1 and end - begin >= warm:
            return end - start


def race(contestants, seconds, check, warm=0):
    """Median seconds of each library; contestants: name -> (run, show)."""
    times = {name: [] for name in contestants}
    for name, (run, show) in contestants.items():
        check(name, show(run()))
        time.sleep(0.008)
    while any(sum(t) < seconds and len(t) < 60 or len(t) < 3 for t in times.values()):
        for name, (run, _) in contestants.items():
            if len(times[name]) >= 3 and sum(times[name]) >= seconds:
                continue
            times[name].append(turn(run, warm))
            time.sleep(0.008)
    return {name: float(np.median(t)) for name, t in times.items()}


def complain(where, who, what):
    global wrong
    wrong += 1
    print(f"WRONG: {where}, {who}: {what}")


def wanted(name, settings):
    return any(part in name for part in settings.only.split(","))


def mean(ratios):
    return float(np.exp(np.mean(np.log(ratios)))) if len(ratios) else float("nan")


def products(peers, settings):
    names = ["tulle", "fresh", "scipy"] + [p.name for p in peers if p.name not in ("tulle", "fresh", "scipy")]
    print(f"\nC = A*B, ms\n{'matrix':17}" + "".join(f"{n:>11}" for n in names) +
          f"{'vs scipy':>10}{'vs best':>9}{'fresh':>7}")
    vs_scipy, vs_best, fresh = [], [], []
    for name, recipe in suite():
        if not wanted(name, settings):
            continue
        A, B = operands(recipe)
        ready = {}
        for peer in peers:
            try:
                ready[peer.name] = peer.product(A, B)
            except Exception as error:          # a peer that fails is reported and left out
                print(f"{name}: {peer.name} cannot: {error}")

        def check(who, C):
            C = sp.csr_array(C)
            C.sort_indices()
            try:
                tulle.verify(A, B, C)
            except tulle.TulleError as error:
                complain(name, who, error)
        t = race(ready, settings.seconds, check)
        best = min(v for k, v in t.items() if k not in ("tulle", "fresh"))
        vs_scipy.append(t["scipy"] / t["tulle"])
        vs_best.append(best / t["tulle"])
        fresh.append(best / t["fresh"])
        print(f"{name:17}" + "".join(f"{t.get(n, float('nan')) * 1e3:11.2f}" for n in names) +
              f"{vs_scipy[-1]:10.2f}{vs_best[-1]:9.2f}{fresh[-1]:7.2f}", flush=True)
    return vs_scipy, vs_best, fresh


def spmm(peers, settings):
    peers = [p for p in peers if hasattr(p, "dense") and p.name != "fresh"]
    names = [p.name for p in peers]
    print(f"\nY = A*X, Y given, ms\n{'matrix':11}{'type':8}{'columns':>8}" +
          "".join(f"{n:>10}" for n in names) + f"{'vs best':>9}")
    ratios = []
    if not settings.cold:
        Mkl.spin(4)
    for name, recipe in SPMM.items():
        if not wanted(name, settings):
            continue
        for dtype in ("float32", "float64"):
            A = sp.csr_array(tulle.gallery(recipe)).astype(dtype)
            for columns in (8, 32, 128):
                X = np.random.default_rng(1).random((A.shape[1], columns)).astype(dtype)
                Y = {p.name: np.zeros((A.shape[0], columns), dtype) for p in peers}
                expected = A.astype("float64") @ X.astype("float64")
                size = abs(A).astype("float64") @ abs(X).astype("float64")

                def check(who, y):
                    off = float((abs(y - expected) / np.maximum(size, 1e-300)).max())
                    if not off < (1e-4 if dtype == "float32" else 1e-12):
                        complain(f"{name} {dtype} {columns}", who, f"off by {off}")
                t = race({p.name: p.dense(A, X, Y[p.name]) for p in peers},
                         settings.seconds / (4 if settings.cold else 20), check,
                         0 if settings.cold else 0.012)
                ratios.append(min(v for k, v in t.items() if k in ("mkl", "torch")) / t["tulle"])
                print(f"{name:11}{dtype:8}{columns:8}" + "".join(f"{t[n] * 1e3:10.3f}" for n in names) +
                      f"{ratios[-1]:9.2f}", flush=True)
    Mkl.spin(200)
    return ratios


def best_of(call, rounds=40, turns=500):
    least = 1e9
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(turns):
            call()
        least = min(least, (time.perf_counter() - start) / turns)
    return least * 1e6


def printed(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def small_things(tiny):
    """The times of a tiny product and of the import."""
    A = sp.csr_array(tulle.gallery("er:100,per_row=3"))
    B = A.copy()
    one, other = map(float, printed([tiny, "er:100,per_row=3"]).split())
    same, two = best_of(lambda: tulle.matmul(A, A)), best_of(lambda: tulle.matmul(A, B))
    by_scipy = best_of(lambda: A @ A)
    print(f"\na product of 100 rows: A*A {one:.1f} us in C, {same:.1f} in Python, {by_scipy:.1f} by SciPy; "
          f"A*B {other:.1f} in C, {two:.1f} in "
          f"Python; overhead={same - one:.1f} us, of two matrices {two - other:.1f} us")
    code = "import time; t = time.perf_counter(); import tulle; tulle.Context; print(time.perf_counter() - t)"
    took = [float(printed([sys.executable, "-c", code])) for _ in range(7)]
    print(f"import={np.median(took) * 1e3:.1f} ms (with the library, before NumPy)")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--no-spmm", action="store_true")
    parser.add_argument("--no-products", action="store_true")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--tiny", default="")
    settings = parser.parse_args()
    global clock
    if settings.cpu_time:
        clock = time.process_time
    peers = [kind(settings.threads) for kind in (Tulle, Fresh, Scipy, Mkl, GraphBLAS, Torch)]
    if settings.tiny:
        small_things(settings.tiny)
    ratios = [] if settings.no_spmm else spmm(peers, settings)
    vs_scipy, vs_best, fresh = ([], [], []) if settings.no_products else products(peers, settings)
    print()
    if ratios:
        print(f"spmm: vs_best={mean(ratios):.2f} min={min(ratios):.2f} cases={len(ratios)}")
    if vs_best:
        print(f"fresh: vs_best={mean(fresh):.2f} min={min(fresh):.2f}")
    least = min(vs_best, default=float("nan"))
    print(f"python_vs_scipy={mean(vs_scipy):.2f} vs_best={mean(vs_best):.2f} min={least:.2f} "
          f"matrices={len(vs_best)}")
    return 1 if wrong else 0


sys.exit(main())
