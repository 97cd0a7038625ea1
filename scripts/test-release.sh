#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Releases the working tree in a scratch repository, and uses the release as
# others do, in empty directories: imports a package, installs nixlring, and
# builds Collectors from a manifest of their own and from builder-config.yaml.
set -euo pipefail
cd "$(dirname "$0")/.."

root=github.com/nixl-otel/nixl-otel
version=v$(sed -n 's/^const Version = "\(.*\)"$/\1/p' semconv/scope.go)
tools=$PWD/internal/tools/go.mod
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
exec 2> >(grep -v '^go: downloading ' >&2)
die() { printf 'test-release: %s\n' "$*" >&2; exit 1; }

mkdir "$work/nixl-otel"
git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -cT - 2>/dev/null | tar -xC "$work/nixl-otel"
(
  cd "$work/nixl-otel"
  sed -i "s/^## Unreleased$/## ${version#v}/" CHANGELOG.md
  git init --quiet
  git config user.name test
  git config user.email test@example.com
  git add --all
  git commit --quiet --message=test
  scripts/tag-release.sh "$version" --create
)

# As in tag-release.sh: the project comes from the tags, the rest from the module cache.
go build -C "$(dirname "$tools")" -trimpath -buildvcs=false -o "$work/builder" go.opentelemetry.io/collector/cmd/builder
export GOPROXY="file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)"
export GOMODCACHE="$work/cache" GOFLAGS='-modcacherw -trimpath -buildvcs=false' GOPRIVATE=$root GOSUMDB=off GOWORK=off CGO_ENABLED=0
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$work/nixl-otel.insteadOf" GIT_CONFIG_VALUE_0="https://$root"

# collector DIR fails unless the Collector that was built in DIR has the receiver.
collector() { "$1"/otelcol* components | grep -q 'name: nixl_shm$' || die "$1 has no receiver nixl_shm"; }

echo "import bridge/ringkernel"
mkdir "$work/program"
cd "$work/program"
go mod init example.com/program 2>/dev/null
printf 'package main\n\nimport _ "%s/bridge/ringkernel"\n\nfunc main() {}\n' "$root" >main.go
go get "$root/bridge/ringkernel@$version"
go build .
go mod verify

echo "install nixlring"
GOBIN=$work/bin go install "$root/cmd/nixlring@$version"
"$work/bin/nixlring" --version

echo "build a Collector from another manifest"
mkdir "$work/manifest"
cd "$work/manifest"
cat >manifest.yaml <<MANIFEST
dist: {module: example.com/collector, name: otelcol, output_path: ./out}
receivers:
  - gomod: $root/receiver/nixlshmreceiver $version
exporters:
  - gomod: $(grep -o '[^ ]*/debugexporter v[^ ]*' "$work/nixl-otel/builder-config.yaml")
providers:
  - gomod: $(grep -o '[^ ]*/yamlprovider v[^ ]*' "$work/nixl-otel/builder-config.yaml")
MANIFEST
"$work/builder" --config=manifest.yaml >builder.log 2>&1 || { cat builder.log >&2; exit 1; }
collector out

echo "build the Collector of the release"
git -C "$work/nixl-otel" checkout --quiet "$version"
"$work/nixl-otel/scripts/build-collector.sh"
[[ $("$work/nixl-otel/dist/otelcol-nixl" --version) == *" ${version#v}" ]] || die "the Collector doesn't have the version ${version#v}"
collector "$work/nixl-otel/dist"
