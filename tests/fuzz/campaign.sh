#!/bin/sh
# Runs every fuzz program of a folder after the other and tabulates what ran. The programs need nothing but glibc; copy
# them with tests/fuzz/corpus (and tests/cases/configs) wherever there are cores.
# Usage: campaign.sh PROGRAMS CORPUS SECONDS JOBS FINDINGS [SEED]
set -u
[ $# -ge 5 ] || { sed -n 2,4p "$0" >&2; exit 2; }
programs=$1 corpus=$2 seconds=$3 jobs=$4 findings=$5 seed=${6:-1}
status=0
echo "| target | CPU s | executions | slots of code reached | crashes | hangs | leaks |"
echo "|---|---:|---:|---:|---:|---:|---:|"
for program in "$programs"/moejit-fuzz-*; do
  [ -x "$program" ] || continue
  name=${program##*/moejit-fuzz-}
  set -- "$corpus/$name"
  [ "$name" = config ] && [ -d "$corpus/../../cases/configs" ] && set -- "$@" "$corpus/../../cases/configs"
  # Sanitizers make a second sixteen.
  line=$("$program" --limit-ms=60000 --seconds="$seconds" --jobs="$jobs" --seed="$seed" --findings="$findings/$name" "$@") || status=1
  field() { echo "$line" | sed -n "s/.*\"$1\": \([0-9.]*\).*/\1/p"; }
  echo "| $name | $(field cpuSeconds) | $(field executions) | $(field slots) | $(field crashes) | $(field hangs) | $(field leaks) |"
done
exit $status
