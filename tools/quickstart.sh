#!/usr/bin/env bash
# From a fresh Debian 12 to a compiled and checked kernel: set-up, build, one compile, one run. No GPU needed.
set -euo pipefail
# shellcheck source=tools/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

build_moejit() {
  # The status line moves on a terminal; in a log ninja prints one line a step.
  NINJA_STATUS='    [%f/%t, %es] ' ninja -C "$build" moejit >&2 || die "the build failed; its first error is above" \
    "A build that was interrupted for want of memory goes on with: ninja -C build -j1 moejit"
}

set_up
step "build" build_moejit
cd "$root"
moejit=build/tools/moejit/moejit
step "compile a kernel and show what it uses" \
  "$moejit" compile kernels/deepseek-v3.gate_up.mlir --arch sm_90a --emit resources
step "run it on a small problem and compare with the oracle" \
  "$moejit" run kernels/deepseek-v3.gate_up.mlir --tokens 64 --device auto --experts 4 --n 512 --check
say ""
say "Done in $SECONDS s. The program is $moejit; its --help lists the commands. tools/test.sh runs all tests."
