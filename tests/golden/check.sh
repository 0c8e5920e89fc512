#!/bin/sh
# Compares every golden file with what the printer makes of its kernel now; with --update, rewrites them.
set -u
emit=$1
folder=$(dirname "$0")
status=0
for kernel in "$folder"/*.mlir; do
  golden=${kernel%.mlir}.cu
  if [ "${2:-}" = --update ]; then
    "$emit" --ptx-to-cuda "$kernel" > "$golden" || status=1
  elif ! "$emit" --ptx-to-cuda "$kernel" | diff -u "$golden" -; then
    echo "$golden differs; if that is wanted: $0 $emit --update" >&2
    status=1
  fi
done
exit $status
