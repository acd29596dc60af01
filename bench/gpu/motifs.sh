#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# motifs.sh FOLDER [ANCHORS] - motifs on a GPU, confirmed and measured in one call (docs/motifs.md): the
# tests of motifs through CUDA, compute-sanitizer on every motif kernel, then auto with and without motifs on
# the matrices of a folder, double and float, with runs of plans.  Ends with a table: where motifs are faster,
# where they are slower, and what looking for them costs where there are none.
#
#   FOLDER    of .tpat.xz, .mtx or .tulle files
#   ANCHORS   a .csv of other codes' times, as bench_gpu takes it
#   DEVICE    cuda:0
#   OUT       a folder for the logs (build/motifs)
#   BUILD, JOBS   as for make
set -uo pipefail
[ $# -ge 1 ] || { echo "usage: motifs.sh FOLDER [ANCHORS]" >&2; exit 2; }
folder=$(realpath "$1") anchors=()
[ $# -lt 2 ] || anchors=(--anchors "$(realpath "$2")")
cd "$(dirname "$0")/../.." || exit
build=${BUILD:-build} device=${DEVICE:-cuda:0} jobs=${JOBS:-$(nproc)}
out=${OUT:-build/motifs}
mkdir -p "$out"
wrong=0

echo "== build"
targets="bench_gpu tulle_command test_gpu_motifs test_gpu_small"
# shellcheck disable=SC2086  # several targets
if ! { cmake -S . -B "$build" && cmake --build "$build" --parallel "$jobs" --target $targets; } \
    >"$out/build.log" 2>&1; then
    tail -n 40 "$out/build.log"
    exit 1
fi

echo "== tests on $device, $SECONDS s"
for t in "test_gpu_motifs" "test_gpu_small motifs"; do
    # shellcheck disable=SC2086  # a program and a case
    TULLE_TEST_DEVICE=$device timeout 200 "$build"/tests/$t >"$out/${t%% *}.log" 2>&1 || wrong=1
    tail -n 1 "$out/${t%% *}.log"
    grep -aE '^FAIL' "$out/${t%% *}.log"
done
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
for tool in memcheck racecheck synccheck; do
    [ -n "$sanitizer" ] || { echo "there is no compute-sanitizer"; break; }
    extra=
    [ $tool != memcheck ] || extra="--report-api-errors no"
    # shellcheck disable=SC2086  # two words or none
    TULLE_TEST_DEVICE=$device timeout 150 "$sanitizer" --tool $tool $extra --error-exitcode 77 \
        --print-limit 20 "$build/tests/test_gpu_small" motifs >"$out/$tool.log" 2>&1 || wrong=1
    echo "$tool: $(grep -aE 'SUMMARY' "$out/$tool.log" | tail -n 1)"
done

echo "== products, $SECONDS s"
for type in f64 f32; do
    rm -f "$out/$type.json"
    "$build/bench/bench_gpu" --device "$device" --ways auto,auto+plain --plans --type $type --no-cusparse \
        ${anchors[@]+"${anchors[@]}"} --pieces "$out/$type.json" "$folder" >"$out/$type.log" 2>&1 || wrong=1
    grep -aE 'WRONG|FAILED' "$out/$type.log"
done

echo "== what came of it, $SECONDS s"
python3 - "$out" <<'PY'
import json, math, sys
out = sys.argv[1]
for kind in ("f64", "f32"):
    rows = {}
    try:
        lines = open(f"{out}/{kind}.json").read().splitlines()
    except OSError:
        continue
    for line in lines:
        p = json.loads(line)
        if p["section"] == "product":
            rows.setdefault(p["matrix"], {})[p["policy"]] = p
    print(f"{kind:22} {'auto':>9} {'plain':>9} {'gain':>6} {'plan':>9} {'gain':>6}  stages of auto")
    found, none = [], []
    for name, ways in sorted(rows.items()):
        if len(ways) < 2:
            continue
        a, b = ways["auto"], ways["auto+plain"]
        stages = a["stages"]
        (found if "motifs" in stages else none).append(b["ms"] / a["ms"])
        plans = b.get("plan_ms", 0) / a["plan_ms"] if a.get("plan_ms") else 0
        print(f"{name:22} {a['ms']:9.4f} {b['ms']:9.4f} {b['ms'] / a['ms']:6.2f} "
              f"{a.get('plan_ms', 0):9.4f} {plans:6.2f}  "
              + ", ".join(f"{k} {v:.3f}" for k, v in stages.items()))
    mean = lambda v: math.exp(sum(map(math.log, v)) / len(v)) if v else float("nan")
    print(f"{kind}: looked for on {len(found)} matrices, gain {mean(found):.2f} (least "
          f"{min(found, default=0):.2f}); sample alone on {len(none)}, {mean(none):.3f} (least "
          f"{min(none, default=0):.3f}: the bar is 0.95)")
PY
[ $wrong -eq 0 ] || echo "something FAILED: see $out"
exit $wrong
