#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Makes the release VERSION of the working tree in a scratch repository, without publishing anything: tags of all
# modules, archives, packages, the image, the chart in a local registry, SBOMs, checksums and a signature with a key of
# its own. Then it installs each of them in empty directories and containers, with the commands of docs/install.md, and
# uses it. What it built for this architecture is in bin/release afterwards.
#
#   scripts/rehearse-release.sh VERSION
#
# It needs the network for modules only. The packages need root, the image podman and runc.
set -euo pipefail
cd "$(dirname "$0")/.."

root=github.com/nixl-otel/nixl-otel
modules=("" bridge/gpu/ receiver/nixlshmreceiver/ cmd/nixlring/)
version=${1#v} arch=$(go env GOARCH) top=$PWD
work=$(mktemp -d)
pids=()
finish() {
  for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done
  # The containers' cgroups.
  find /sys/fs/cgroup -depth -type d -path "*/${work##*/}*" -exec rmdir {} + 2>/dev/null || true
  chmod -R u+w "$work" && rm -rf "$work"
}
trap finish EXIT
exec 2> >(grep --line-buffered -v '^go: \(downloading\|finding\|added\|creating\|to add\)' >&2)
die() { printf 'rehearse-release: %s\n' "$*" >&2; exit 1; }
step() { printf '\n=== %s (%d s)\n' "$*" "$SECONDS"; }
mkdir "$work"/{tools,proxy}

step "tag v$version of all modules"
source=$work/nixl-otel
mkdir "$source"
git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -cT - 2>/dev/null | tar -xC "$source"
key=$work/key
ssh-keygen -q -t ed25519 -N '' -C release -f "$key"
(
  cd "$source"
  sed -i "s/^## Unreleased$/## $version (2000-01-01)/" CHANGELOG.md
  go run ./internal/install CHANGELOG.md docs/install.md
  echo "release $(<"$key.pub")" >.github/release-signers
  # At the tag of a release, these have the checksums of the real one.
  find . -name go.sum -exec sed -i "\\#^$root\(/[^ ]*\)* v#d" {} +
  git init --quiet
  git config user.name test
  git config user.email test@example.com
  git remote add origin "https://$root"
  git add --all
  git commit --quiet --message=test
  scripts/tag-release.sh "v$version" --create
  git checkout --quiet "v$version"
)

# As in tag-release.sh: the project comes from the tags, the rest from the module cache.
cache=$(go env GOMODCACHE)/cache/download others=$(go env GOPROXY)
scripts/build-release.sh --tools "$work/tools"
go build -C internal/tools -o "$work/tools/" go.opentelemetry.io/collector/cmd/builder
GOBIN=$work/tools go install github.com/google/go-containerregistry/cmd/registry@v0.21.2
PATH=$work/tools:$PATH

step "build the release"
(
  cd "$source"
  export GOPROXY="file://$cache,$others" GOMODCACHE="$work/cache" GOFLAGS='-modcacherw -trimpath' GOPRIVATE=$root GOSUMDB=off GOWORK=off
  export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$source.insteadOf" GIT_CONFIG_VALUE_0="https://$root"
  for m in "${modules[@]}"; do (cd "$work" && go mod download "$root${m:+/${m%/}}@v$version"); done
  sed "s/goarch: .*/goarch: [$arch]/" .goreleaser.yaml >"$work/goreleaser.yaml"
  SIGNING_KEY=$key nice scripts/build-release.sh --config="$work/goreleaser.yaml" --skip=publish,announce
)
release=$source/bin/release
cp "$source"/bin/chart/*.tgz "$release"
# A proxy as users know it: without the repository, and without anything but the tags.
mkdir -p "$work/proxy/github.com"
cp -r "$work/cache/cache/download/github.com/nixl-otel" "$work/proxy/github.com"
export GOPROXY="file://$work/proxy,file://$cache,$others" GOMODCACHE="$work/modules" GOFLAGS=-modcacherw GONOSUMDB=$root GOWORK=off CGO_ENABLED=0

step "release notes"
"$source/scripts/release-notes.sh" "$version" | tee "$work/notes"
! grep -iE 'unreleased|no release' "$work/notes" || die "the notes are those of a version that isn't released"

registry=127.0.0.1:$((20000 + RANDOM % 10000))
registry -port "${registry#*:}" >/dev/null 2>&1 & pids+=($!)

# commands HEADING prints the commands in a section of docs/install.md, which get the artifacts from this machine.
commands() {
  awk -v heading="## $1" '/^## /{found = $0 == heading} found && sub(/^    /, "")' "$source/docs/install.md" |
    sed "s#https://$root/releases/download/v$version#file://$release#g; s#https://raw.githubusercontent.com/nixl-otel/nixl-otel/v$version#file://$source#g
      s#ghcr.io/#$registry/#g; s/amd64/$arch/g; s/sudo //; s#/dev/shm/nixl-\(demo\|agents\)#$work/\1#g; s/curl /curl -sS /"
}
# empty NAME changes to an empty directory.
empty() { mkdir -p "$work/empty/$1" && cd "$work/empty/$1"; }
# await COMMAND runs it until it succeeds, for half a minute.
await() { for _ in {1..150}; do "$@" >/dev/null 2>&1 && return; sleep 0.2; done; die "after 30 s, still no success: $*"; }

step "verify"
empty download
cp "$release"/*.{tar.gz,deb,rpm,tgz,json} .
bash -euxc "$(commands Verifying)"
echo changed >>"$(echo nixlring_*.tar.gz)"
! sha256sum --check --ignore-missing --status checksums.txt || die "a changed archive passes"
for sbom in *.cdx.json; do grep -q "\"$root" "$sbom" || die "$sbom lacks the project"; done

step "nixlring: from nothing to the picture"
started=$SECONDS
empty programs
bash -euxc "$(commands nixlring | sed '/^bin\/nixlring/d')"
bin/nixlring simulate "$work/demo" --scenario straggler >/dev/null & pids+=($!)
bin/nixlring web "$work/demo" --listen 127.0.0.1:0 >page & pids+=($!)
await test -s page
page=$(grep -o 'http://[^ ]*' page)
await bash -c "curl -fs ${page}state.json | grep -q '\"kind\":\"straggler\"'"
[[ $(bin/nixlring --version) == *"$version"* ]] || die "nixlring doesn't have the version $version"
echo "the page names the slow worker after $((SECONDS - started)) s"

step "Collector: a metric in Prometheus"
started=$SECONDS
PORT=$((20000 + RANDOM % 10000))
PORT=$PORT bash -euxc "$(commands Collector | sed "s/9464/$PORT/")
  kill \$(jobs -p)" | grep -m2 '^nixl_transfer_io'
echo "metrics after $((SECONDS - started)) s"

step "Go packages: a program that exports"
started=$SECONDS
empty go
awk '/^```go$/{found = 1; next} /^```$/{found = 0} found' "$source/docs/install.md" >main.go
commands "Go packages" | sed "/^mkdir program/a cp $PWD/main.go ." >script
bash -euxc "$(<script)" >exported
grep -q nixl.transfer.requests exported || die "the program exports nothing"
echo "exported after $((SECONDS - started)) s"
for m in "${modules[@]}"; do
  empty "go/${m:-root}"
  go mod init example.com/user
  go get "$root${m:+/${m%/}}@v$version"
  go mod verify >/dev/null
done
empty go/install
GOBIN=$PWD go install "$root/cmd/nixlring@v$version"
./nixlring --version

step "a Collector from another manifest, without a clone"
empty manifest
cat >manifest.yaml <<MANIFEST
dist: {module: example.com/collector, name: otelcol, output_path: ./out}
$(awk '/^## /{found = /Your own Collector/} /^```$/{code = 0} found && code; /^```yaml$/{code = 1}' "$source/docs/install.md")
exporters:
  - gomod: $(grep -o '[^ ]*/debugexporter v[^ ]*' "$source/builder-config.yaml")
providers:
  - gomod: $(grep -o '[^ ]*/yamlprovider v[^ ]*' "$source/builder-config.yaml")
MANIFEST
GOFLAGS='-modcacherw -trimpath' builder --config=manifest.yaml >builder.log 2>&1 || { cat builder.log >&2; exit 1; }
out/otelcol components | grep -q 'name: nixl_shm$' || die "the Collector has no receiver nixl_shm"

step "chart"
empty chart
await curl -fs "http://$registry/v2/"
helm push --plain-http "$release"/nixl-otel-*.tgz "oci://$registry/nixl-otel/charts"
commands Kubernetes | sed 's/helm install/helm template --plain-http --kube-version 1.33.0/' | bash -eux >chart.yaml
image=ghcr.io/nixl-otel/otelcol-nixl:$version
grep -q "image: \"$image\"" chart.yaml || die "the chart doesn't use $image"

step "image"
if [[ $EUID == 0 ]] && command -v podman >/dev/null && command -v runc >/dev/null; then
  empty image
  # The last stage of the Dockerfile, from the programs of this release.
  mkdir -p etc/ssl/certs src/dist/full src/bin src/examples state
  cp /etc/ssl/certs/ca-certificates.crt etc/ssl/certs/
  tar -xzf "$release/otelcol-nixl-full_${version}_linux_$arch.tar.gz" -C src/dist/full otelcol-nixl-full
  tar -xzf "$release/nixlring_${version}_linux_$arch.tar.gz" -C src/bin nixlring
  cp -r "$source/examples/collector" src/examples/
  sed -n '/^FROM scratch/,$p' "$source/Dockerfile" | sed 's/--from=build //' >Dockerfile
  podman() {
    command podman --root "$work/podman/root" --runroot "$work/podman/run" --tmpdir "$work/podman/tmp" \
      --storage-driver=vfs --cgroup-manager=cgroupfs --runtime=runc --events-backend=none "$@"
  }
  podman build --quiet --tag "$registry/nixl-otel/otelcol-nixl:$version" .
  podman push --quiet --tls-verify=false "$registry/nixl-otel/otelcol-nixl:$version"
  podman rmi --all >/dev/null
  podman pull --quiet --tls-verify=false "$(commands Image | sed 's/.* //')"
  run=(--rm --network=none --ulimit=nofile=1024:1024 --ulimit=nproc=4096:4096 --cgroup-parent="/${work##*/}" --user=0 --timeout=10 --volume="$work/agents:/rings" --env=NIXL_TELEMETRY_DIR=/rings)
  "$work/empty/programs/bin/nixlring" simulate "$work/agents" --no-consumer >/dev/null & pids+=($!)
  await test -e "$work/agents/sim-0"
  podman run "${run[@]}" --entrypoint=/usr/bin/nixlring "$registry/nixl-otel/otelcol-nixl:$version" ls
  podman run "${run[@]}" "$registry/nixl-otel/otelcol-nixl:$version" >log 2>&1 || true # until the time is over
  grep -m1 'ring opened' log || die "the image drains no ring: $(<log)"
else
  echo "no root, no podman or no runc: the image isn't built"
fi

step "packages"
cd "$top"
rm -rf bin/release && mkdir -p bin && cp -r "$release" bin/release
scripts/test-package.sh
step "done: bin/release"
