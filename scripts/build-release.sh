#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds the release of the tag at HEAD with GoReleaser, in bin/release: archives, packages, the chart,
# SBOMs, checksums and their signature. With GITHUB_TOKEN, it drafts the release on GitHub.
#
#   SIGNING_KEY=FILE scripts/build-release.sh [OPTION OF GORELEASER...]
#   scripts/build-release.sh --tools DIR     only builds the programs that this needs, for PATH
#
# SIGNING_KEY is a private SSH key whose public key is in .github/release-signers.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ${1-} == --tools ]]; then
  GOBIN=$2 go install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
  go build -C internal/tools -o "$2/" github.com/goreleaser/goreleaser/v2
  go build -C test -o "$2/" helm.sh/helm/v3/cmd/helm
  exit
fi

: "${SIGNING_KEY:?must be the file with the private key}"
version=$(git describe --tags --exact-match --match='v[0-9]*')
notes=$(mktemp)
trap 'rm -f "$notes"' EXIT
scripts/release-notes.sh "$version" >"$notes"
GORELEASER_CURRENT_TAG=$version goreleaser release --clean --release-notes "$notes" "$@"
