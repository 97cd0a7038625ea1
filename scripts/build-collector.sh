#!/usr/bin/env bash
# Builds dist/otelcol-nixl from builder-config.yaml and this tree.
#
# Resolving the Collector's module graph takes a while, so that is done again
# only when something it is made of has changed. What has to be compiled again
# go build knows better than any list of files.
set -euo pipefail
cd "$(dirname "$0")/.."

export GOWORK=off CGO_ENABLED=0 # one module graph, one static binary

version=$(scripts/version.sh)

# The builder takes any key of its configuration from the environment too,
# which is how the version gets there. It leaves a folder behind in TMPDIR.
generate() {
  env "dist.version=$version" TMPDIR="$PWD/dist/tmp" go tool -modfile=internal/tools/go.mod \
    builder --config=builder-config.yaml --skip-compilation "$@" >dist/builder.log 2>&1 ||
    { cat dist/builder.log >&2; exit 1; }
  rm -rf dist/tmp
}

mkdir -p dist/tmp
graph=$(cat builder-config.yaml go.mod internal/tools/go.mod | cksum)
if [[ $graph == "$(cat dist/.graph 2>/dev/null)" ]]; then
  generate --skip-get-modules # for the version alone
else
  echo "resolving the Collector's modules (minutes on a new machine)" >&2
  rm -f dist/.graph
  generate
  echo "$graph" >dist/.graph
fi

# With -mod=mod a package that the receiver newly imports doesn't need a new graph.
echo "building dist/otelcol-nixl $version" >&2
go build -C dist -mod=mod -trimpath -buildvcs=false -ldflags='-s -w' -o otelcol-nixl .
