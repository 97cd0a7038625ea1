#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Prints the version to build with: the tag, or the version under way and the commit.
# VERSION names another, where there is no repository to ask.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ -n ${VERSION:-} ]]; then
  echo "$VERSION"
  exit
fi

# Without the option git would rewrite its index, which another git may hold.
git() { command git --no-optional-locks "$@" 2>/dev/null; }

if tag=$(git describe --tags --match='v[0-9]*' --dirty); then
  echo "${tag#v}"
else
  base=$(sed -n 's/^  version: \([^ ]*\).*/\1/p' builder-config.yaml)
  commit=$(git describe --always --exclude='*' --dirty) || commit= # an unpacked archive
  echo "$base${commit:++$commit}"
fi
