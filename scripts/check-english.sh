#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Finds phrases that make text hard to read, and prints each line with a suggestion:
#
#   scripts/check-english.sh [FILE...]   checks all files of the repository by default
#
# scripts/check-english.txt lists the phrases. The exit code is 1 if there are any.
set -euo pipefail
cd "$(dirname "$0")/.."

if (($#)); then
  files=("$@")
else
  # Also new files that git doesn't ignore, but no deleted ones.
  mapfile -t files < <(git ls-files --cached --others --exclude-standard \
    '*.md' '*.go' '*.yaml' '*.yml' '*.sh' '*.tpl' '*.conf' '*.cpp' '*.hpp' '*help*.txt' Makefile |
    while IFS= read -r file; do [[ ! -e $file ]] || printf '%s\n' "$file"; done)
fi

status=0
while IFS=$'\t' read -r phrase suggestion; do
  [[ -n $phrase && $phrase != \#* ]] || continue
  found=$(grep -HnEiw -- "$phrase" "${files[@]}") || (($? == 1)) || exit 2
  [[ -n $found ]] || continue
  status=1
  while IFS= read -r line; do printf '%s\n    %s\n' "$line" "$suggestion"; done <<<"$found"
done <scripts/check-english.txt
exit "$status"
