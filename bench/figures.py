#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""figures.py [--check] - generates the results in README.md from recorded measurements.

    docs/records/cpu.txt      the output of `make bench` on one machine
    docs/records/h200.json    the record of `make gpu-check` on another

The results are docs/figures/speed.svg and the table between two marks in README.md.  `make figures` calls
this.  With --check nothing is written, and the exit status is 1 if the files differ from what would be
written.  Needs only Python."""
import json
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CPU, GPU = ROOT / "docs/records/cpu.txt", ROOT / "docs/records/h200.json"
SVG, README = ROOT / "docs/figures/speed.svg", ROOT / "README.md"
BEGIN, END = "<!-- results: made by `make figures` -->", "<!-- end of results -->"


def geomean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def read_cpu():
    """The head of the record, and (name, ratio) for products and for sparse times dense."""
    head, products, dense, kind, one_thread = {}, [], [], None, False
    for line in CPU.read_text().splitlines():
        word = line.split()
        if re.match(r"(machine|date|command): ", line):
            head[word[0].rstrip(":")] = line.split(": ", 1)[1]
        elif line.startswith("matrix "):
            kind = (products, 12) if "GrB" in line else (dense, 12) if "Eigen" in line else None
        elif line.startswith(("C = A*A", "products that")):
            kind = None
            one_thread = "at 1 threads" in line
        elif kind and len(word) == kind[1] and re.fullmatch(r"[\d.]+", word[-1]):
            if kind[0] is dense:
                dense.append((f"{word[0]} {word[1]} {word[2]}", float(word[6]) / float(word[3])))
            elif not one_thread:
                products.append((word[0], min(float(word[7]), float(word[8])) / float(word[5])))
    if not products or not dense or len(head) != 3:
        sys.exit(f"{CPU.name}: head, products or dense products were not found")
    return head, products, dense


def read_gpu():
    record = json.loads(GPU.read_text())

    def compared(p):
        return p["policy"] == "auto" and p["driver"] == "cuda" and p.get("cusparse_ms")

    products = [(p["matrix"], p["cusparse_ms"] / p["ms"]) for p in record["products"] if compared(p)]
    dense = [(f"{p['matrix']} {p['type']} {p['columns']}", p["cusparse_ms"] / p["ms"])
             for p in record["spmm"] if compared(p)]
    return record, products, dense


def table(cpu, gpu):
    head, cpu_products, cpu_dense = cpu
    record, gpu_products, gpu_dense = gpu
    rows = [("C = A\\*A, sparse", head["machine"], "the faster of GraphBLAS and Eigen", cpu_products),
            ("Y = A\\*X, X dense", head["machine"], "Eigen", cpu_dense),
            ("C = A\\*A, sparse", record["device"], "cuSPARSE", gpu_products),
            ("Y = A\\*X, X dense", record["device"], "cuSPARSE", gpu_dense)]
    lines = ["| product | on | times as fast as | geometric mean | least | most | cases |",
             "|---|---|---|---|---|---|---|"]
    for product, machine, peer, cases in rows:
        ratios = [r for _, r in cases]
        lines.append(f"| {product} | {machine} | {peer} | **{geomean(ratios):.1f}** | {min(ratios):.2f} "
                     f"| {max(ratios):.1f} | {len(ratios)} |")
    return "\n".join(lines)


# ---- the picture: one dot a matrix on a logarithmic axis, fastest first

ROW, LEFT, WIDE, TOP, GAP = 12, 128, 300, 58, 36
COLORS = {"cpu": "#0b6e99", "gpu": "#4f8a10"}


def panel(out, x0, title, note, cases, color, ticks):
    cases = sorted(cases, key=lambda c: -c[1])
    low, high = math.log(ticks[0]), math.log(ticks[-1])

    def at(ratio):
        return x0 + LEFT + WIDE * (math.log(ratio) - low) / (high - low)

    bottom = TOP + ROW * len(cases)
    out.append(f'<text x="{x0}" y="20" class="title">{title}</text>'
               f'<text x="{x0}" y="36" class="note">{note}</text>')
    for tick in ticks:
        kind = "one" if tick == 1 else "grid"
        out.append(f'<path d="M{at(tick):.1f} {TOP - 6}V{bottom}" class="{kind}"/>'
                   f'<text x="{at(tick):.1f}" y="{bottom + 14}" class="tick">{tick:g}x</text>')
    for i, (name, ratio) in enumerate(cases):
        y = TOP + ROW * i + ROW / 2
        out.append(f'<text x="{x0 + LEFT - 8}" y="{y + 3:.1f}" class="name">{name}</text>'
                   f'<path d="M{at(1):.1f} {y:.1f}H{at(ratio):.1f}" stroke="{color}" '
                   f'stroke-opacity=".35" stroke-width="2"/>'
                   f'<circle cx="{at(ratio):.1f}" cy="{y:.1f}" r="3.4" fill="{color}"/>')
    return bottom


def picture(cpu, gpu):
    head, cpu_products, _ = cpu
    record, gpu_products, _ = gpu
    out = []
    width = 2 * (LEFT + WIDE) + 2 * GAP
    low = min(1, min(r for _, r in cpu_products + gpu_products))
    ticks = ([0.5] if low < 1 else []) + [1, 2, 4, 8, 16]
    if max(r for _, r in cpu_products + gpu_products) > 16:
        ticks.append(32)
    bottom = max(panel(out, GAP / 2, "CPU: times as fast as the faster of GraphBLAS and Eigen",
                       head["machine"], cpu_products, COLORS["cpu"], ticks),
                 panel(out, GAP * 1.5 + LEFT + WIDE, "GPU: times as fast as cuSPARSE",
                       record["device"], gpu_products, COLORS["gpu"], ticks))
    height = bottom + 28
    style = ("text{font:10px sans-serif;fill:#333}.title{font-size:13px;font-weight:bold}.note{fill:#666}"
             ".name,.tick{font-size:9px}.name{text-anchor:end}.tick{text-anchor:middle;fill:#666}"
             ".grid{stroke:#ddd}.one{stroke:#555}")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}">\n'
            f"<!-- made by bench/figures.py from docs/records/ -->\n<style>{style}</style>\n"
            f'<rect width="{width}" height="{height}" fill="#fff"/>\n' + "\n".join(out) + "\n</svg>\n")


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    cpu, gpu = read_cpu(), read_gpu()
    readme = README.read_text()
    if readme.count(BEGIN) != 1 or readme.count(END) != 1:
        sys.exit("README.md lacks the marks between which the results stand")
    before, rest = readme.split(BEGIN)
    new = before + BEGIN + "\n" + table(cpu, gpu) + "\n" + END + rest.split(END)[1]
    old = 0
    for path, text in ((README, new), (SVG, picture(cpu, gpu))):
        if path.exists() and path.read_text() == text:
            continue
        old += 1
        what = "not made from the records; run make figures" if check else "written"
        print(f"{path.relative_to(ROOT)}: {what}")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return 1 if check and old else 0


if __name__ == "__main__":
    sys.exit(main())
