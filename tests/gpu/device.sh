#!/bin/bash
# Runs everything that needs a GPU from what stage.sh gathered: environment, kernels against the oracle, memory checker,
# torch references, speed. Each step has a time limit and a failure stops nothing; tables and logs go to $OUT, a summary
# comes last.
# usage: device.sh [env|matrix|launch|memcheck|reference|speed|batched|bench|tune|startup|racecheck|initcheck|
# synccheck|mutants|calibrate|instructions|bundle ...] (launch: only the launch tests of matrix, as for two GPUs; bench:
# moejit and its peers; tune: as far as the time goes, from $TABLE on where that is given; mutants: the mutation proof, on
# every core and no GPU, with the faults of the records in $RECORDS counted as run; calibrate, instructions: whole kernels
# and single instructions beside the emulator; bundle: every kernel of a pinned bundle, by a program of the runtime alone)
set -u
started=$(date +%s)
here=$(cd "$(dirname "$0")" && pwd)
staged=$here
[ -e "$staged/bench.tar.gz" ] || staged=$here/../../.device
out=${OUT:-$PWD/gpu-results}
total=${TOTAL_SECONDS:-530}
steps=${*:-env matrix memcheck reference speed batched racecheck initcheck}
mkdir -p "$out"
work=$(mktemp -d)
logs=$work/logs
mkdir -p "$logs"
summary=$out/summary.txt
: >"$summary"

left() { echo $((total - ($(date +%s) - started))); }
note() { echo "$*" | tee -a "$summary"; }
keepLogs() { tar -C "$work" -czf "$out/logs.tar.gz" logs 2>/dev/null; }

# step NAME SECONDS COMMAND…: the command under its limit, its output in logs/NAME.log.
step() {
  local name=$1 limit=$2 begin code
  shift 2
  local rest=$(($(left) - 8))
  if [ "$rest" -lt 10 ]; then
    note "== $name: not run, no time left"
    return 1
  fi
  [ "$limit" -gt "$rest" ] && limit=$rest
  begin=$(date +%s)
  timeout --kill-after=8 "$limit" "$@" >"$logs/$name.log" 2>&1
  code=$?
  note "== $name: exit $code after $(($(date +%s) - begin)) s (limit $limit)"
  keepLogs
  return $code
}
# tailOf NAME LINES: the end of a step's log into the summary.
tailOf() { tail -n "$2" "$logs/$1.log" 2>/dev/null | cut -c1-400 | tee -a "$summary"; }

tests=$work/moejit-gpu-tests
cp "$staged/moejit-gpu-tests" "$tests" && chmod +x "$tests"
tar -C "$work" --no-same-owner -xzf "$staged/bench.tar.gz"
cd "$work" || exit 1

# The command, in the work folder.
unpackBench() {
  [ -e "$work/moejit" ] && return
  cp "$staged/moejit" "$work/moejit" && chmod +x "$work/moejit"
}

# Compiles the kernels of the tests, once. A bundle must be its owner's alone.
makeBundle() {
  [ -e "$work/gpu" ] && return
  cp "$staged/moejit-gpu-bundle" "$work/" && chmod +x "$work/moejit-gpu-bundle"
  step kernels 200 bash -c 'umask 077 && "$0/moejit-gpu-bundle" -o "$0/gpu" --kernels "$0/kernels" --threads "$(nproc)"' "$work"
  tailOf kernels 2
}

sanitizer=$(command -v compute-sanitizer)
for candidate in /usr/local/cuda*/bin/compute-sanitizer; do
  [ -z "$sanitizer" ] && [ -x "$candidate" ] && sanitizer=$candidate
done

# sanitize TOOL SECONDS: the quick tests, each tensor in an allocation of its own, under one tool.
sanitize() {
  local tool=$1 limit=$2 more=${3:-}
  if [ -z "$sanitizer" ]; then
    note "== $tool: compute-sanitizer is not installed"
    return 1
  fi
  local rest=$(($(left) - 20))
  [ "$limit" -gt "$rest" ] && limit=$rest
  [ "$limit" -lt 15 ] && { note "== $tool: not run, no time left"; return 1; }
  # A child of the tests faults on purpose: only their own process is watched.
  step "$tool" "$limit" "$sanitizer" --tool "$tool" --target-processes application-only --error-exitcode 9 \
    --print-limit 30 \
    "$tests" "$work/gpu" --quick --separate --in-process --hang-seconds 90 --seconds $((limit - 12)) \
    --journal "$work/$tool.journal" $more
  grep -aE "^========= (ERROR SUMMARY|RACECHECK SUMMARY|Target application|Error:|Internal)|^========= (Invalid|Uninitialized|Error|Warning|Race)" \
    "$logs/$tool.log" | sort | uniq -c | sort -rn | head -n 12 | tee -a "$summary"
  grep -aE "^(kernels|launch tests|worst|[0-9.]+ s,)|^(FAIL|LOST)" "$logs/$tool.log" | head -n 14 | cut -c1-300 | tee -a "$summary"
}

for name in $steps; do
  case $name in
  matrix | memcheck | racecheck | initcheck | synccheck | launch | reference | speed | batched | calibrate) makeBundle ;;
  esac
  case $name in
  env)
    step env 45 bash -c '
      nvidia-smi --query-gpu=index,name,driver_version,memory.total,power.limit,clocks.max.sm,clocks.sm,temperature.gpu,persistence_mode,mig.mode.current --format=csv
      nvidia-smi | head -n 4; nvcc --version | tail -n 2; ldd --version | head -n 1; uname -sr; nproc; free -g | head -n 2
      ls /usr/local/cuda*/bin/compute-sanitizer; compute-sanitizer --version | tail -n 2
      python3 -c "import torch; print(\"torch\", torch.__version__, torch.cuda.get_device_name(0), torch.cuda.device_count())"'
    tailOf env 24
    ;;
  matrix)
    step matrix 170 "$tests" "$work/gpu" --seconds 150 --hang-seconds 3 --journal "$logs/matrix.journal" \
      --markdown "$out/matrix.md" --lines "$out/matrix-lines.md"
    grep -a "launch: " "$logs/matrix.log" | cut -c1-260 | tee -a "$summary"
    sed -n '/^kernels: /,$p' "$logs/matrix.log" | head -n 22 | cut -c1-240 | tee -a "$summary"
    ;;
  memcheck)
    sanitize memcheck 110
    # The checker must notice a y of half its size, or its silence means nothing.
    if [ -n "$sanitizer" ] && [ "$(left)" -gt 40 ]; then
      step memcheck-control 30 "$sanitizer" --tool memcheck --error-exitcode 9 --print-limit 3 \
        "$tests" "$work/gpu" --quick --separate --short-y --in-process --no-launch \
        --only grouped.w-tensor --journal "$work/control.journal"
      note "memcheck-control, y too short: $(grep -acE '^========= Invalid __global__ write' "$logs/memcheck-control.log") invalid writes reported (expected: some)"
    fi
    ;;
  # Under racecheck many launches at once take minutes.
  racecheck) sanitize racecheck 90 --no-launch ;;
  initcheck | synccheck) sanitize "$name" 60 ;;
  launch)
    step launch 90 "$tests" "$work/gpu" --no-matrix --seconds 70 --hang-seconds 3 --journal "$logs/launch.journal" \
      --markdown "$out/launch.md"
    grep -a "launch: " "$logs/launch.log" | cut -c1-260 | tee -a "$summary"
    ;;
  reference)
    step reference 90 env PYTHONUNBUFFERED=1 python3 "$staged/reference.py" --library "$staged/libmoejit.so" \
      --folder "$work/gpu" --markdown "$out/reference.md" --seconds 75
    tailOf reference 30
    ;;
  speed)
    step speed 200 env PYTHONUNBUFFERED=1 python3 "$staged/speed.py" --library "$staged/libmoejit.so" \
      --folder "$work/gpu" --markdown "$out/speed.md" --json "$out/speed.json" --seconds 180
    tailOf speed 60
    ;;
  batched)
    step batched 90 env PYTHONUNBUFFERED=1 python3 "$staged/speed_batched.py" --library "$staged/libmoejit.so" \
      --folder "$work/gpu" --markdown "$out/speed-batched.md" --json "$out/speed-batched.json" --seconds 75
    tailOf batched 24
    ;;
  bench)
    unpackBench
    step bench 330 bash -c '"$0/moejit" bench kernels --cache "$0/kernel-cache" --json --svg "$1/roofline.svg" \
      >"$1/bench.json"' "$work" "$out"
    step peers 240 env PYTHONUNBUFFERED=1 bash -c \
      'python3 tools/bench/peers.py kernels/*.mlir --seconds 200 >"$0/peers.json"' "$out"
    step join 10 bash -c 'python3 tools/bench/join.py "$0/bench.json" "$0/peers.json" >"$0/bench.md"' "$out"
    tailOf bench 4
    tailOf peers 8
    tail -n 60 "$out/bench.md" 2>/dev/null | cut -c1-300 | tee -a "$summary"
    ;;
  tune)
    unpackBench
    [ -n "${TABLE:-}" ] && cp "$TABLE" "$out/tuned.json"
    step tune 500 bash -c '"$0/moejit" tune kernels -o "$1/tuned.json" --cache "$0/kernel-cache" --json \
      >"$1/tune-times.json"' "$work" "$out"
    tailOf tune 12
    ;;
  startup)
    unpackBench
    step startup 90 "$work/moejit" bench kernels --startup --rounds 3
    tailOf startup 60
    cp "$logs/startup.log" "$out/startup.txt" 2>/dev/null
    ;;
  bundle)
    tar -C "$work" --no-same-owner -xzf "$staged/pinned.tar.gz"
    chmod -R go-w "$work/pinned"
    # Nothing of the environment: no CUDA toolkit, no NVRTC, no cache.
    step bundle 120 env -i "$work/pinned/moejit-bundle-probe" "$work/pinned/bundle" "$(cat "$work/pinned/digest")" 1 32768
    tailOf bundle 6
    # One byte of one kernel more: nothing is launched from it.
    for kernel in "$work"/pinned/bundle/*.kernel; do echo >>"$kernel"; break; done
    step bundle-altered 60 env -i "$work/pinned/moejit-bundle-probe" "$work/pinned/bundle" "$(cat "$work/pinned/digest")" 1 32768
    tailOf bundle-altered 2
    ;;
  mutants)
    tar -C "$work" --no-same-owner -xzf "$staged/mutants.tar.gz"
    step mutants "$(left)" "$work/mutants/moejit-mutation-tests" --every=1 --jobs="${JOBS:-$(nproc)}" \
      --seconds=$(($(left) - 30)) --units="$work/mutants/units" --equivalents="$work/mutants/equivalents.txt" \
      --golden="$work/mutants/dense-gemm.cu" ${RECORDS:+--from="$RECORDS"} \
      --json="$out/mutants.json" --table="$out/mutants.md" --survivors
    cat "$out/mutants.md" >>"$summary"
    tailOf mutants 12
    ;;
  calibrate)
    # Both devices in one process: the emulator compiles the printed kernels with the C++ compiler of that machine.
    cp "$staged/moejit-gpu-calibrate" "$work/" && chmod +x "$work/moejit-gpu-calibrate"
    step calibrate 150 bash -c '"$0/moejit-gpu-calibrate" "$0/gpu" --work "$0/units" --seconds "${CALIBRATE_SECONDS:-75}" \
      --markdown "$1/calibration.md" >/dev/null' "$work" "$out"
    grep -a "^DIFFERS" "$logs/calibrate.log" | head -n 20 | cut -c1-300 | tee -a "$summary"
    tailOf calibrate 2
    ;;
  instructions)
    cp "$staged/moejit-gpu-instructions" "$work/" && chmod +x "$work/moejit-gpu-instructions"
    step instructions 90 bash -c '"$0/moejit-gpu-instructions" --work "$0/units-instructions" --rounds "${ROUNDS:-32}" \
      --markdown "$1/instructions.md"' "$work" "$out"
    tailOf instructions 20
    ;;
  *) note "== $name: no such step" ;;
  esac
done
keepLogs
echo
echo "==== summary, $(($(date +%s) - started)) s"
grep -a "^==" "$summary"
rm -rf "$work"
