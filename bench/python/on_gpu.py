# SPDX-License-Identifier: MIT
"""on_gpu.py - A*A (A*A^T if A is rectangular) on a CUDA device by tulle, CuPy and PyTorch, each with operands
of its own type.

    on_gpu.py [--device cuda:0] [--only PART] [--pieces FILE] FOLDER-FILE-OR-RECIPE...

Files are .tpat.xz (packed patterns), .mtx and .tulle. Timed: `A @ B` of CuPy and of PyTorch, tulle.matmul of
CuPy's matrices and of PyTorch's tensors, with a wait for the device at the end; the median of at least 5
after 2. Results are compared with tulle's on the CPU. The last line is `cuda_vs_best=X min=Y matrices=N`:
(the better of CuPy and PyTorch) / (tulle with CuPy's matrices). --pieces appends it to a file of
bench/gpu/record.c.
"""
import argparse
import json
import lzma
import os
import sys
import time

import numpy as np
import scipy.sparse as sp

import tulle


def packed(path):
    """Reads a pattern from .tpat.xz; its values are integers."""
    with (lzma.open if path.endswith(".xz") else open)(path, "rb") as file:
        raw = np.frombuffer(file.read(), np.uint8)
    assert bytes(raw[:5]) == b"TPAT1", path
    raw = raw[8:]
    ends = np.flatnonzero(raw < 128)
    starts = np.append(0, ends[:-1] + 1)
    within = np.arange(len(raw)) - np.repeat(starts, ends - starts + 1)
    numbers = np.add.reduceat((raw & 127).astype(np.int64) << (7 * within), starts)
    rows, cols, nnz = (int(n) for n in numbers[:3])
    indptr = np.append(0, np.cumsum(numbers[3:3 + rows]))
    steps = numbers[3 + rows:3 + rows + nnz] + 1
    first = indptr[:-1][np.diff(indptr) > 0]
    zigzag = steps[first] - 1
    columns = np.cumsum((zigzag >> 1) ^ -(zigzag & 1))          # the first column of each non-empty row
    steps[first] = 0
    run = np.cumsum(steps)
    lengths = np.diff(indptr)[np.diff(indptr) > 0]
    indices = run - np.repeat(run[first], lengths) + np.repeat(columns, lengths)
    values = np.random.default_rng(1).integers(1, 9, nnz).astype("float64")
    return sp.csr_array((values, indices.astype("int32"), indptr.astype("int32")), shape=(rows, cols))


def load(word):
    if ".tpat" in word:
        return packed(word)
    A = tulle.read(word) if os.path.exists(word) else tulle.gallery(word)
    A.data = np.random.default_rng(1).integers(1, 9, A.nnz).astype("float64")
    return A


def found(words, only):
    for word in words:
        names = [os.path.join(word, n) for n in sorted(os.listdir(word))] if os.path.isdir(word) else [word]
        for name in names:
            matrix = not os.path.isdir(word) or any(end in name for end in (".tpat", ".mtx", ".tulle"))
            if only in name and matrix:
                yield name


def median(call, wait, least=5):
    times = []
    for turn in range(least + 2 + 40):
        wait()
        start = time.perf_counter()
        result = call()
        wait()
        took = time.perf_counter() - start
        del result
        if turn >= 2:
            times.append(took)
        if len(times) >= least and sum(times) > 0.3:
            break
    return float(np.median(times)) * 1e3


def main():
    import cupy
    import cupyx.scipy.sparse as cs
    import torch
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--only", default="")
    parser.add_argument("--pieces")
    parser.add_argument("operands", nargs="+")
    settings = parser.parse_args()
    number = int(settings.device.partition(":")[2] or 0)
    cupy.cuda.Device(number).use()                  # the default device for new arrays
    torch.cuda.set_device(number)

    def give_back():
        """Frees the memory that CuPy and PyTorch keep for later, for the next library."""
        cupy.get_default_memory_pool().free_all_blocks()
        torch.cuda.empty_cache()

    def tensor(A):
        parts = [torch.from_numpy(x).to(settings.device) for x in (A.indptr, A.indices, A.data)]
        return torch.sparse_csr_tensor(*parts, size=A.shape)
    wait = torch.cuda.synchronize
    names = ("tulle, cupy", "tulle, torch", "cupy", "torch")
    print(f"{'matrix':24}" + "".join(f"{n + ' ms':>17}" for n in names) + f"{'vs best':>9}")
    ratios, wrong = [], 0
    for word in found(settings.operands, settings.only):
        A = load(word)
        B = A if A.shape[0] == A.shape[1] else sp.csr_array(A.T.tocsr())
        name = os.path.basename(word).split(".tpat")[0]
        g = [cs.csr_matrix(sp.csr_matrix(M)) for M in ((A,) if B is A else (A, B))]
        t = [tensor(M) for M in ((A,) if B is A else (A, B))]
        calls = {"tulle, cupy": lambda: tulle.matmul(g[0], g[-1]),
                 "tulle, torch": lambda: tulle.matmul(t[0], t[-1]),
                 "cupy": lambda: g[0] @ g[-1], "torch": lambda: t[0] @ t[-1]}
        expected = tulle.matmul(A, B, device="cpu")
        times = {}
        for who, call in calls.items():
            try:
                C = call()
                total = float(C.data.sum()) if "cupy" in who else float(C.values().sum())
                right = expected.data.sum()
                if total != right and (who.startswith("tulle") or abs(total / right - 1) > 1e-9):
                    print(f"WRONG: {name}, {who}: the entries add up to {total}, not to {right}")
                    wrong += 1
                del C
                times[who] = median(call, wait)
            except Exception as error:              # usually out of memory: reported, and the others continue
                print(f"{name}: {who} cannot: {(str(error).splitlines() or [repr(error)])[0][:100]}")
                wrong += who.startswith("tulle")
            give_back()
        peers = [times[who] for who in ("cupy", "torch") if who in times]
        if "tulle, cupy" in times and peers:
            ratios.append(min(peers) / times["tulle, cupy"])
            print(f"{name:24}" + "".join(f"{times.get(n, float('nan')):17.3f}" for n in names) +
                  f"{ratios[-1]:9.2f}", flush=True)
    mean = np.exp(np.mean(np.log(ratios))) if ratios else float("nan")
    if settings.pieces and ratios:
        piece = {"section": "measure", "name": "python A*A", "driver": "cuda", "matrices": len(ratios),
                 "failed": int(wrong), "cupy_torch_geomean": round(float(mean), 4),
                 "cupy_torch_min": round(min(ratios), 4)}
        with open(settings.pieces, "a") as file:
            file.write(json.dumps(piece) + "\n")
    print(f"cuda_vs_best={mean:.2f} min={min(ratios, default=float('nan')):.2f} "
          f"matrices={len(ratios)}")
    return 1 if wrong or not ratios else 0


if __name__ == "__main__":
    sys.exit(main())
