#!/usr/bin/env bash
# Sets up, builds everything and runs every test. The last lines are ctest's summary.
set -euo pipefail
# shellcheck source=tools/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

build_all() {
  NINJA_STATUS='    [%f/%t, %es] ' ninja -C "$build" >&2 || die "the build failed; its first error is above"
}

set_up
step "build" build_all
say "==> tests"
exec ctest --test-dir "$build" --output-on-failure --no-tests=error --parallel "$(nproc)"
