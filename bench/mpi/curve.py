#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""curve.py - draws docs/figures/cluster.svg: the bytes that A*A moves on 2 to 1024 ranks, in one dimension
and on the best grid. Input is docs/records/forecast.txt, the concatenated output of build/bench/forecast for
several recipes. Needs only Python."""
import math
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RECORD, SVG = ROOT / "docs/records/forecast.txt", ROOT / "docs/figures/cluster.svg"
WIDTH, HEIGHT, LEFT, TOP, GAP = 240, 200, 62, 40, 66
# name, column of the table, colour
KINDS = [("one dimension", 1, "#1f6fb2"), ("a grid of ranks", 4, "#c4561e")]


def read():
    """[(recipe, [the numbers of a line])]"""
    tables = []
    for line in RECORD.read_text().splitlines():
        head = re.match(r"A\*A, (\S+): ", line)
        if head:
            tables.append((head[1], []))
        elif re.match(r" *\d", line):
            tables[-1][1].append([float(word) for word in line.split()[:7]])
    return tables


def panel(x0, recipe, lines):
    sizes = [line[k] for line in lines for _, k, _ in KINDS]
    low, high = math.floor(math.log10(min(sizes))), math.ceil(math.log10(max(sizes)))

    def x(ranks):
        return x0 + (math.log2(ranks) - 1) / 9 * WIDTH

    def y(size):
        return TOP + HEIGHT - (math.log10(size) - low) / (high - low) * HEIGHT

    out = [f'<text x="{x0}" y="{TOP - 12}" font-weight="bold">{recipe}</text>']
    for power in range(low, high + 1):
        text = f"{10 ** (power - 6):g} MB"
        at = f"{y(10 ** power):.1f}"
        out.append(f'<line x1="{x0}" x2="{x0 + WIDTH}" y1="{at}" y2="{at}" stroke="#ddd"/>')
        out.append(f'<text x="{x0 - 4}" y="{y(10 ** power) + 4:.1f}" text-anchor="end">{text}</text>')
    for ranks in (2, 8, 32, 128, 1024):
        out.append(f'<text x="{x(ranks):.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{ranks}</text>')
    for _, k, colour in KINDS:
        points = " ".join(f"{x(line[0]):.1f},{y(line[k]):.1f}" for line in lines)
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
    return out


def main():
    tables = read()
    width = LEFT + len(tables) * (WIDTH + GAP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{TOP + HEIGHT + 56}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{TOP + HEIGHT + 56}" fill="white"/>']
    for i, (recipe, lines) in enumerate(tables):
        out += panel(LEFT + i * (WIDTH + GAP), recipe, lines)
    for i, (name, _, colour) in enumerate(KINDS):
        out.append(f'<text x="{LEFT + 160 * i}" y="{TOP + HEIGHT + 42}" fill="{colour}">bytes, {name}</text>')
    out.append(f'<text x="{LEFT + 330}" y="{TOP + HEIGHT + 42}">over the number of ranks</text></svg>')
    SVG.write_text("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
