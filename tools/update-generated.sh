#!/bin/sh
# Makes the stages in docs/generated anew, from what is built. usage: tools/update-generated.sh [BUILD_FOLDER]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build}
moejit=$build/tools/moejit/moejit
[ -x "$moejit" ] || { echo "update-generated.sh: no $moejit; build it first" >&2; exit 1; }

kernel=deepseek-v3.gate_up
folder=$root/docs/generated/$kernel
mkdir -p "$folder"
while read -r stage file; do
  "$moejit" compile "$root/kernels/$kernel.mlir" --emit "$stage" -o "$folder/$file"
done <<LIST
moe moe.mlir
plan plan.json
tile tile.mlir
ptx-ir ptx.mlir
cuda kernel.cu
LIST
