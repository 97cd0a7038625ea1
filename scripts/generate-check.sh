#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Fails if a generated file is stale.
#
# Generates in a copy: the answer must not depend on what is committed, and a
# check must leave the tree as it was.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/was" "$work/is"

scripts/copy-tree.sh "$work/was"
cp -R "$work/was/." "$work/is"

make -s -C "$work/is" CHECK= generate >&2
if ! diff -ru "$work/was" "$work/is"; then
  echo "generated files are stale: run make generate and commit the changes" >&2
  exit 1
fi
