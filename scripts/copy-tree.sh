#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Copies the working tree, without ignored files, to an existing directory.
#
#   scripts/copy-tree.sh DIR
set -euo pipefail
target=$(realpath "$1")
cd "$(dirname "$0")/.."

git ls-files -z --cached --others --exclude-standard |
  while IFS= read -r -d '' file; do
    [[ ! -e $file ]] || printf '%s\0' "$file" # deleted, but not yet in the index
  done | xargs -0 cp -P --parents -t "$target"
