#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs every fuzz target of the project, or those of the given directories, for
# FUZZTIME each (default 30s), and prints the number of executions:
#
#   scripts/fuzz.sh [DIRECTORY...]
#
# Inputs that fail are stored in testdata/fuzz of the package. Commit them, so that
# `go test` runs them.
set -euo pipefail
cd "$(dirname "$0")/.."

fuzztime="${FUZZTIME:-30s}"
# By default, Go minimizes each interesting input for up to 60 s, and hardly fuzzes.
minimize="${FUZZMINIMIZETIME:-10x}"
workers="${FUZZWORKERS:-2}"
# Targets that write files are ten times as fast in memory.
if [[ -w /dev/shm ]]; then export TMPDIR=/dev/shm; fi
total=0
failed=0
log="$(mktemp)"
trap 'rm -f "$log"' EXIT

# fuzz_dir runs the targets in the tests of one directory. It uses grep, because `go
# test -list` would build every test binary.
fuzz_dir() {
  local dir="$1" target execs
  for target in $(grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$dir"/*_test.go 2>/dev/null | cut -c6- | sort -u); do
    echo "fuzz $dir $target for $fuzztime"
    # -C: the directory may belong to any of the repository's modules.
    go test -C "$dir" -toolexec="$PWD/scripts/fuzz-toolexec.sh" -run='^$' \
      -fuzz="^$target\$" -fuzztime="$fuzztime" -fuzzminimizetime="$minimize" -parallel="$workers" . >"$log" 2>&1 || failed=1
    grep -v '^fuzz: elapsed' "$log" || true
    execs="$(grep -oE 'execs: [0-9]+' "$log" | tail -n1 | cut -d' ' -f2)"
    echo "$dir $target: ${execs:-0} executions"
    total=$((total + ${execs:-0}))
  done
}

if [ $# -gt 0 ]; then
  for dir in "$@"; do fuzz_dir "${dir#./}"; done
else
  # All modules.
  for module in $(find . -name go.mod -not -path '*/.*/*' -not -path '*/node_modules/*' | sort); do
    for dir in $(cd "$(dirname "$module")" && go list -f '{{.Dir}}' ./...); do fuzz_dir "$dir"; done
  done
fi
echo "all targets: $total executions"
exit "$failed"
