#!/usr/bin/env bash
# Fuzzes every target of the project for FUZZTIME each (default 30s), or those
# below the given directories: scripts/fuzz.sh ./ringbuf
# An input that fails is in its package's testdata/fuzz: commit it, so that
# plain `go test` runs it from then on.
set -euo pipefail
cd "$(dirname "$0")/.."

fuzztime="${FUZZTIME:-30s}"
failed=0
# grep -r finds the targets of all modules, without building a test.
while IFS=: read -r file target; do
  dir=$(dirname "$file")
  echo "fuzz $dir $target for $fuzztime"
  go -C "$dir" test -run='^$' -fuzz="^$target\$" -fuzztime="$fuzztime" . || failed=1
done < <(grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' "${@:-.}" | sed 's/:func /:/' | sort -u)
exit "$failed"
