#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Makes the release commit of VERSION and tags each released module.
#
#   scripts/tag-release.sh VERSION            shows the commit and the tags
#   scripts/tag-release.sh VERSION --create   creates them in this repository
#
# On a branch, the modules of the product require each other at v0.0.0 and
# replace that with a directory. `go install` rejects a module with a replace
# directive, so the release commit requires VERSION without one. The commit has
# HEAD as its parent, but no branch contains it. All work is done in a clone: the
# go command reads the root module at VERSION from there, and checks that the
# modules build.
set -euo pipefail
cd "$(dirname "$0")/.."

root=github.com/nixl-otel/nixl-otel
image=ghcr.io/nixl-otel/otelcol-nixl                             # as in .goreleaser.yaml
released=(bridge/gpu receiver/nixlshmreceiver cmd/nixlring) # they require the root module
die() { printf 'tag-release: %s\n' "$*" >&2; exit 1; }

version=${1-} mode=${2-}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || die "VERSION is \"$version\", but must be like v0.1.0"
[[ -z $mode || $mode == --create ]] || die "unknown argument $mode; only --create may follow VERSION"
catalog=v$(sed -n 's/^const Version = "\(.*\)"$/\1/p' semconv/scope.go)
[[ $version == "$catalog" ]] || die "VERSION is $version, but the catalog in semconv/scope.go has $catalog; change one of them"
scripts/release-notes.sh "$version" >/dev/null
[[ -s .github/release-signers ]] || die "there is no .github/release-signers; CONTRIBUTING.md says how to make the key that signs releases"
grep -qF "$version" docs/install.md || die "docs/install.md doesn't say how to install $version; run: make generate"
[[ -z $(git status --porcelain) ]] || die "the tree has changes; commit them first"
tags=("$version")
for m in "${released[@]}"; do tags+=("$m/$version"); done
for t in "${tags[@]}"; do
  ! git rev-parse --quiet --verify "refs/tags/$t" >/dev/null || die "the tag $t exists; choose another version"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone --quiet --shared . "$work/clone"
clone() { git -C "$work/clone" "$@"; }
clone config user.name "$(git config user.name)"
clone config user.email "$(git config user.email)"

# The root module must be final before another module records its checksum.
# The first commands change files of the root module, the rest don't.
(
  cd "$work/clone"
  sed -i "s#^\(version\|appVersion\): .*#\1: ${version#v}#" deploy/helm/nixl-otel/Chart.yaml
  sed -i "s|^  repository: otelcol-nixl$|  repository: $image|" deploy/helm/nixl-otel/values.yaml
  sed -i "s|^  version: .*|  version: ${version#v}|; s|\($root/[^ ]*\) v0\.0\.0$|\1 $version|" builder-*.yaml
  sed -i "s|image: otelcol-nixl:.*|image: $image:${version#v}|" examples/docker/*.yaml examples/kubernetes/*.yaml
)
clone commit --quiet --allow-empty --all --message="Release $version" # empty in a rehearsal at the tag
clone tag "$version"

# Serve the root module from the clone and the rest from the module cache. The
# version isn't final yet, so it must not get into that cache.
export GOPROXY="file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)"
export GOMODCACHE="$work/cache" GOFLAGS='-modcacherw -trimpath' GOPRIVATE=$root GOWORK=off CGO_ENABLED=0
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$work/clone.insteadOf" GIT_CONFIG_VALUE_0="https://$root"

for m in "${released[@]}"; do
  dir=$work/clone/$m
  go -C "$dir" mod edit -dropreplace="$root" -require="$root@$version"
  go -C "$dir" mod tidy
  ! grep '^replace' "$dir/go.mod" || die "$m/go.mod still has a replace directive"
  go -C "$dir" build -o /dev/null ./...
done
# The examples and tests keep their replace directives, which apply to any version.
go -C "$work/clone/examples" mod edit -require="$root@$version"
go -C "$work/clone/test" mod edit -require="$root@$version" -require="$root/receiver/nixlshmreceiver@$version"

clone commit --quiet --allow-empty --all --amend --no-edit
for t in "${tags[@]}"; do clone tag --force "$t" >/dev/null; done
clone show --stat --format='commit %H%n%n    %s%n' HEAD
printf 'tag %s\n' "${tags[@]}"
if [[ $mode == --create ]]; then
  git fetch --quiet "$work/clone" 'refs/tags/*:refs/tags/*'
  # GitHub starts no workflow for more than three tags that are pushed at once.
  echo "created; publish with: git push origin ${tags[*]:1}"
  echo "and then, which starts the release: git push origin ${tags[0]}"
else
  echo "nothing was changed; add --create to create the commit and the tags"
fi
