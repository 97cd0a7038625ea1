#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds a Collector from a recipe and this source tree: dist/otelcol-nixl from
# builder-config.yaml, or the output of another recipe.
#
#   scripts/build-collector.sh [--generate] [RECIPE]
#
# --generate writes the sources only. GOOS and GOARCH select another system.
#
# Resolving the Collector's module graph takes long, so the script repeats it only
# if the recipe or a go.mod file has changed. It always runs go build, which
# compiles only changed packages.
set -euo pipefail
cd "$(dirname "$0")/.."

export GOWORK=off CGO_ENABLED=0 # one module graph, one static binary

compile=1
if [[ ${1-} == --generate ]]; then
  compile=
  shift
fi
recipe=${1:-builder-config.yaml}
dir=$(sed -n 's|^  output_path: \./||p' "$recipe")
name=$(sed -n 's|^  name: ||p' "$recipe")
version=$(scripts/version.sh)

# The builder reads keys of its configuration from the environment, such as
# dist.version. It doesn't remove its directory in TMPDIR.
generate() {
  env --unset=GOOS --unset=GOARCH "dist.version=$version" TMPDIR="$PWD/$dir/tmp" go tool -modfile=internal/tools/go.mod \
    builder --config="$recipe" --skip-compilation "$@" >"$dir/builder.log" 2>&1 ||
    { cat "$dir/builder.log" >&2; exit 1; }
  rm -rf "$dir/tmp"
}

mkdir -p "$dir/tmp"
if command -v flock >/dev/null; then # two builds in one clone, as of two demos, take turns
  exec {lock}>"$dir/.lock"
  flock "$lock"
fi
mkdir -p "$dir/tmp" # the other build may have removed it
graph=$(cat "$recipe" go.mod receiver/nixlshmreceiver/go.mod internal/tools/go.mod | cksum)
if [[ $graph == "$(cat "$dir/.graph" 2>/dev/null)" ]]; then
  generate --skip-get-modules # only to set the version
else
  echo "resolving the Collector's modules (minutes on a new machine)" >&2
  rm -f "$dir/.graph"
  generate
  echo "$graph" >"$dir/.graph"
fi

[[ -n $compile ]] || exit 0
# With -mod=mod, a new import in the receiver doesn't need a new module graph.
echo "building $dir/$name $version" >&2
go build -C "$dir" -mod=mod -trimpath -buildvcs=false -ldflags='-s -w' -o "$name" .
