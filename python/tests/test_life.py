# SPDX-License-Identifier: MIT
"""Threads, forks, signals, and how long things live."""
import gc
import multiprocessing
import os
import pickle
import resource
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import same, whole

import tulle
from tulle._context import _mine, context_for


def test_results_outlive_their_context():
    A = whole((60, 60))
    expected = A.toarray() @ A.toarray()
    with tulle.Context("cpu") as ctx:
        C = tulle.matmul(A, A)
        assert ctx.stats().c_nnz == C.nnz
    gc.collect()
    data, indices = C.data, C.indices
    same(C, expected)
    del C
    gc.collect()
    assert data.sum() == expected.sum() and indices.max() < 60
    with pytest.raises(tulle.InvalidError, match="closed"):
        tulle.matmul(A, A, device=ctx)
    found = []
    thread = threading.Thread(target=lambda: found.append(tulle.matmul(A, A)))
    thread.start()
    thread.join()
    same(found[0], expected)            # its thread and its context are gone


def test_which_context_is_used():
    A = whole((9, 9))
    assert context_for(None) is context_for("cpu") is context_for(None)
    with tulle.Context("cpu", threads=1) as outer:
        with tulle.Context("cpu") as inner:
            assert context_for(None) is inner and context_for(outer) is outer
        assert context_for(None) is outer
        tulle.matmul(A, A)
        assert outer.stats().threads == 1 and "cpu" in repr(outer)
        outer.trim()
    assert not _mine.stack
    other = []
    thread = threading.Thread(target=lambda: other.append(context_for(None)))
    thread.start()
    thread.join()
    assert other[0] is not context_for(None)


def test_the_last_block_closes_a_context():
    A = whole((9, 9))
    ctx = tulle.Context("cpu")
    with ctx:
        with ctx:
            tulle.matmul(A, A)
        assert context_for(None) is ctx
        tulle.matmul(A, A)
        thread = threading.Thread(target=lambda: ctx.__enter__().__exit__(None, None, None))
        thread.start()
        thread.join()
        tulle.matmul(A, A)                  # the other thread's block was not the last
    with pytest.raises(tulle.InvalidError, match="closed"):
        tulle.matmul(A, A, device=ctx)
    ctx = tulle.Context("cpu").__enter__()
    thread = threading.Thread(target=lambda: ctx.__exit__(None, None, None))
    thread.start()                          # ended by another thread than began it
    thread.join()
    with pytest.raises(tulle.InvalidError, match="closed"):
        ctx.trim()
    _mine.stack.remove(ctx)


def test_memory_is_given_back():
    A = tulle.gallery("er:2000,per_row=40")
    with tulle.Context("cpu"):
        for _ in range(3):
            tulle.matmul(A, A)
        before = resident()
        for _ in range(30):             # 12 MB each
            C = tulle.matmul(A, A)
        assert C.data.nbytes > 8 << 20 and resident() - before < 3 * C.data.nbytes
        kept = [tulle.matmul(A, A) for _ in range(10)]
    del C
    before = resident()
    del kept
    gc.collect()
    assert before - resident() > 80 << 20


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def test_peak_memory():
    code = """
import resource, tulle, numpy
A = tulle.gallery("poisson3d:50,points=27")
tulle.matmul(A[:10], A)                             # everything is loaded
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
C = tulle.matmul(A, A, threads=2)                   # each thread has scratch of its own
size = lambda M: M.data.nbytes + M.indices.nbytes + M.indptr.nbytes
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
print((2 * size(A) + grown) / (2 * size(A) + size(C)), size(C))
"""
    ratio, size = map(float, subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split())
    assert size > 100 << 20 and ratio <= 1.2


def test_eight_threads_at_once():
    matrices = [whole((80, 80), seed=s) for s in range(8)]
    shared = tulle.Context("cpu")
    wrong = []

    def work(i):
        A = matrices[i]
        expected = A.toarray() @ A.toarray()
        for turn in range(40):
            C = tulle.matmul(A, A, device=shared if turn % 2 else None)
            if not np.array_equal(C.toarray(), expected) or not np.array_equal(tulle.matmul(A, A.toarray()), expected):
                wrong.append(i)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_others_run_meanwhile():
    A = tulle.gallery("er:4000,per_row=200")            # 160 million products, but at most 16 million entries
    steps, ended = [], threading.Event()

    def count():
        while not ended.is_set():
            steps.append(time.perf_counter())
            time.sleep(0.001)
    thread = threading.Thread(target=count)
    thread.start()
    start = time.perf_counter()
    tulle.matmul(A, A, threads=1)
    end = time.perf_counter()
    ended.set()
    thread.join()
    # Two steps would be possible with the interpreter held, before and after the call itself.
    assert len([t for t in steps if start < t < end]) > 5, "the interpreter was held during the product"


def _child(A, C, pipe):
    D = tulle.matmul(A, A)
    with tulle.Context("cpu", threads=2) as ctx:
        E = tulle.matmul(A, A, device=ctx)
    pipe.send(bool((abs(D - C).nnz == 0) and (abs(E - C).nnz == 0)))
    pipe.close()


@pytest.mark.parametrize("way", ("fork", "spawn"))
def test_children(way):
    context = multiprocessing.get_context(way)
    A = tulle.gallery("rmat:scale=10,edges=8,values=integer")
    C = tulle.matmul(A, A)
    ours, theirs = context.Pipe()
    child = context.Process(target=_child, args=(A, C, theirs))
    child.start()
    assert ours.poll(300) and ours.recv()
    child.join(300)
    assert child.exitcode == 0
    same(tulle.matmul(A, A), C.toarray())


def test_fork_while_another_thread_multiplies():
    A = tulle.gallery("er:20000,per_row=30")
    inside = threading.Event()
    thread = threading.Thread(target=lambda: tulle.matmul(A, A, threads=1, progress=lambda stage, fraction: inside.set()))
    thread.start()
    assert inside.wait(300)
    child = os.fork()
    if child == 0:
        small = whole((20, 20))
        ok = np.array_equal(tulle.matmul(small, small).toarray(), small.toarray() @ small.toarray())
        gc.collect()
        os._exit(0 if ok else 1)
    thread.join()
    deadline = time.time() + 300
    while time.time() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            assert status == 0
            return
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child did not end")


def test_pickling_of_results():
    A = whole((30, 30))
    C = pickle.loads(pickle.dumps(tulle.matmul(A, A)))
    same(C, A.toarray() @ A.toarray())
    assert isinstance(pickle.loads(pickle.dumps(tulle.ShapeError("x"))), tulle.ShapeError)


# ---- progress and signals

LONG = "er:100000,per_row=60"           # 360 million products: seconds on one thread, which is all that these tests allow


@pytest.fixture(scope="module")
def long_operand():
    return tulle.gallery(LONG)


def test_progress(long_operand):
    A, told = tulle.gallery("er:20000,per_row=30"), []
    C = tulle.matmul(A, A, progress=lambda stage, fraction: told.append((stage, fraction)))
    assert len(told) > 1 and all(isinstance(s, str) and 0 <= f <= 1 for s, f in told)
    assert tulle.verify(A, A, C) < 1e-12
    with pytest.raises(tulle.CancelledError, match="cancel"):
        tulle.matmul(long_operand, long_operand, progress=lambda stage, fraction: True)

    def bad(stage, fraction):
        raise KeyError("mine")
    with pytest.raises(KeyError, match="mine"):
        tulle.matmul(long_operand, long_operand, progress=bad)
    with tulle.Context("cpu") as ctx:
        ctx.progress = lambda stage, fraction: tulle.matmul(A, A, device=ctx)
        with pytest.raises(tulle.InvalidError, match="at work"):
            tulle.matmul(A, A)
    same(tulle.matmul(whole((9, 9)), whole((9, 9))), whole((9, 9)).toarray() @ whole((9, 9)).toarray())


def test_ctrl_c_in_a_long_product(long_operand):
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        tulle.matmul(long_operand, long_operand, threads=1)
    timer.join()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    same(tulle.matmul(whole((9, 9)), whole((9, 9))), whole((9, 9)).toarray() @ whole((9, 9)).toarray())


def test_handlers_that_raise_and_that_do_not(long_operand):
    class Alarm(Exception):
        pass

    def handler(number, frame):
        calls.append(number)
        if len(calls) > 1:
            raise Alarm
    calls = []
    old = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.2)
        with pytest.raises(Alarm):
            tulle.matmul(long_operand, long_operand, threads=1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert len(calls) == 2


def test_ctrl_c_with_progress_and_in_spmm(long_operand):
    X = np.ones((long_operand.shape[1], 600))
    for call in (lambda: tulle.matmul(long_operand, long_operand, progress=lambda s, f: None, threads=1),
                 lambda: tulle.matmul(long_operand, X, threads=1)):
        timer = threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            call()
        timer.join()
