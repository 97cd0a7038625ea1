#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Prints the version to build: the tag, or the version of builder-config.yaml and the
# commit. VERSION overrides it, for builds without a repository.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ -n ${VERSION:-} ]]; then
  echo "$VERSION"
  exit
fi

# Without this option, git would rewrite its index, which another git process may lock.
git() { command git --no-optional-locks "$@" 2>/dev/null; }

if tag=$(git describe --tags --match='v[0-9]*' --dirty); then
  echo "${tag#v}"
else
  base=$(sed -n 's/^  version: \([^ ]*\).*/\1/p' builder-config.yaml)
  commit=$(git describe --always --exclude='*' --dirty) || commit= # an unpacked archive
  echo "$base${commit:++$commit}"
fi
