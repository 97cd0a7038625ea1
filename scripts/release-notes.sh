#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Prints what CHANGELOG.md says about VERSION.
#
#   scripts/release-notes.sh VERSION
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1#v}
notes=$(awk -v heading="## $version" '/^## / {found = $0 == heading || index($0, heading " ") == 1; next} found' CHANGELOG.md)
[[ -n $notes ]] || { echo "release-notes: CHANGELOG.md has no section \"## $version\"; rename \"## Unreleased\" first" >&2; exit 1; }
echo "$notes"
