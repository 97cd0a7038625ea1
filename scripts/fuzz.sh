#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs every fuzz target of the project for FUZZTIME each (default 30s), or
# those of the directories that are given: scripts/fuzz.sh ringbuf internal/tally
# Prints how many executions each target had. Inputs that fail are stored in the
# package's testdata/fuzz: commit them, so that `go test` runs them from then on.
set -euo pipefail
cd "$(dirname "$0")/.."

fuzztime="${FUZZTIME:-30s}"
# Go minimizes each interesting input for up to 60 s otherwise, and hardly fuzzes.
minimize="${FUZZMINIMIZETIME:-10x}"
workers="${FUZZWORKERS:-2}"
total=0
failed=0
log="$(mktemp)"
trap 'rm -f "$log"' EXIT

# fuzz_dir runs the targets that the tests of one directory declare. `go test
# -list` would build every test binary.
fuzz_dir() {
  local dir="$1" target execs
  for target in $(grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$dir"/*_test.go 2>/dev/null | cut -c6- | sort -u); do
    echo "fuzz $dir $target for $fuzztime"
    # -C: the directory may belong to any of the repository's modules.
    go test -C "$dir" -run='^$' -fuzz="^$target\$" -fuzztime="$fuzztime" \
      -fuzzminimizetime="$minimize" -parallel="$workers" . >"$log" 2>&1 || failed=1
    grep -v '^fuzz: elapsed' "$log" || true
    execs="$(grep -oE 'execs: [0-9]+' "$log" | tail -n1 | cut -d' ' -f2)"
    echo "$dir $target: ${execs:-0} executions"
    total=$((total + ${execs:-0}))
  done
}

if [ $# -gt 0 ]; then
  for dir in "$@"; do fuzz_dir "${dir#./}"; done
else
  # All modules: their go.mod files are found rather than listed.
  for module in $(find . -name go.mod -not -path '*/.*/*' -not -path '*/node_modules/*' | sort); do
    for dir in $(cd "$(dirname "$module")" && go list -f '{{.Dir}}' ./...); do fuzz_dir "$dir"; done
  done
fi
echo "all targets: $total executions"
exit "$failed"
