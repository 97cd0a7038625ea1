#!/usr/bin/env bash
# Runs every fuzz target of the project for FUZZTIME each (default 30s), or
# those of the packages that are given: scripts/fuzz.sh ./ringbuf
# What a target finds is in its package's testdata/fuzz: commit it, so that
# plain `go test` runs it from then on.
set -euo pipefail
cd "$(dirname "$0")/.."

fuzztime="${FUZZTIME:-30s}"
failed=0
while read -r package dir; do
  # Targets by their declarations: go test -list would build every test binary.
  for target in $(grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$dir"/*_test.go 2>/dev/null | cut -c6- | sort -u); do
    echo "fuzz $package $target for $fuzztime"
    go test -run='^$' -fuzz="^$target\$" -fuzztime="$fuzztime" "$package" || failed=1
  done
done < <(go list -f '{{.ImportPath}} {{.Dir}}' "${@:-./...}")
exit "$failed"
