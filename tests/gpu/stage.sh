#!/bin/sh
# Fills .device/ with what device.sh needs on the GPU machine: programs, the C library, descriptions of kernels and
# scripts. Nothing but kernels is built there. usage: tests/gpu/stage.sh [BUILD_FOLDER] [TARGET_FOLDER]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build}
target=${2:-$root/.device}
limitKiB=61440

fail() {
  echo "stage.sh: $1" >&2
  exit 1
}

[ -x "$build/tests/gpu/moejit-gpu-bundle" ] || fail "no $build/tests/gpu/moejit-gpu-bundle; build moejit-gpu-bundle"
[ -x "$build/tests/gpu/moejit-gpu-tests" ] || fail "no $build/tests/gpu/moejit-gpu-tests; build moejit-gpu-tests"

mkdir -p "$target"
rm -rf "${target:?}"/*
strip -o "$target/moejit-gpu-tests" "$build/tests/gpu/moejit-gpu-tests"
# Kernels are compiled there: it has NVRTC and more processors.
strip -o "$target/moejit-gpu-bundle" "$build/tests/gpu/moejit-gpu-bundle"
if [ -x "$build/tests/gpu/moejit-gpu-calibrate" ]; then
  strip -o "$target/moejit-gpu-calibrate" "$build/tests/gpu/moejit-gpu-calibrate"
else
  echo "stage.sh: no $build/tests/gpu/moejit-gpu-calibrate; the step calibrate will not run" >&2
fi
if [ -x "$build/tests/gpu/moejit-gpu-instructions" ]; then
  strip -o "$target/moejit-gpu-instructions" "$build/tests/gpu/moejit-gpu-instructions"
else
  echo "stage.sh: no $build/tests/gpu/moejit-gpu-instructions; the step instructions will not run" >&2
fi
library=$(ls "$build"/runtime/c/libmoejit.so 2>/dev/null || true)
if [ -n "$library" ]; then
  strip --strip-unneeded -o "$target/libmoejit.so" "$library"
else
  echo "stage.sh: no $build/runtime/c/libmoejit.so; reference.py and speed.py will not run" >&2
fi
# The command compiles there, where NVRTC is; the drivers of peers need torch.
if [ -x "$build/tools/moejit/moejit" ]; then
  strip -o "$target/moejit" "$build/tools/moejit/moejit"
else
  echo "stage.sh: no $build/tools/moejit/moejit; bench and tune will not run" >&2
fi
# A bundle pinned by its digest, and a program of the runtime alone.
probe=$build/tests/bare/moejit-bundle-probe
if [ -x "$probe" ] && [ -x "$build/tools/moejit/moejit" ]; then
  rm -rf "$build/pinned"
  mkdir -p "$build/pinned"
  "$build/tools/moejit/moejit" aot "$root"/kernels/deepseek-v3.*.mlir "$root"/kernels/qwen3-30b-a3b.*.mlir \
    -o "$build/pinned/bundle" | tail -n 1 | sed 's/.* //' >"$build/pinned/digest"
  strip -o "$build/pinned/moejit-bundle-probe" "$probe"
  tar -C "$build" -czf "$target/pinned.tar.gz" pinned
else
  echo "stage.sh: no $probe; the step bundle will not run" >&2
fi
tar -C "$root" -czf "$target/bench.tar.gz" --exclude=__pycache__ kernels tools/bench
# The mutation proof takes many cores, no GPU. Its kernels are compiled here, so that it needs no compiler there.
mutants=$build/tests/mutation/moejit-mutation-tests
if [ -x "$mutants" ]; then
  rm -rf "$build/mutants"
  mkdir -p "$build/mutants"
  "$mutants" --prepare --units="$build/mutants/units"
  strip -o "$build/mutants/moejit-mutation-tests" "$mutants"
  cp "$root/tests/mutation/equivalents.txt" "$root/tests/golden/dense-gemm.cu" "$build/mutants"
  tar -C "$build" -czf "$target/mutants.tar.gz" mutants
else
  echo "stage.sh: no $mutants; the step mutants will not run" >&2
fi
cp "$root"/tests/gpu/device.sh "$target/"
for script in "$root"/tests/gpu/*.py; do
  [ -e "$script" ] && cp "$script" "$target/"
done

# Ignored by git without a line in the repository.
if exclude=$(git -C "$root" rev-parse --git-path info/exclude 2>/dev/null); then
  case $exclude in /*) ;; *) exclude=$root/$exclude ;; esac
  mkdir -p "$(dirname "$exclude")"
  grep -qx '/.device/' "$exclude" 2>/dev/null || echo '/.device/' >>"$exclude"
fi

size=$(du -sk "$target" | cut -f1)
ls -l "$target"
echo "$target: $size KiB"
[ "$size" -le "$limitKiB" ] || fail "$target is larger than $limitKiB KiB"
