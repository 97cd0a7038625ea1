#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Tests the Helm chart in a real cluster, which nothing else should use at the same
# time. `make kube-test` builds the Collector and runs this script.
#
#   KUBECONFIG            the cluster
#   KUBE_LOAD             a command that loads an image archive into the nodes   [kind load image-archive]
#   KUBE_RESTART_KUBELET  a command that restarts the kubelet; without it, that isn't tested
#                         (kind: docker exec kind-control-plane systemctl restart kubelet)
#
# It needs kubectl and helm, which `go install helm.sh/helm/v3/cmd/helm@v3.22.0` builds.
set -euo pipefail
cd "$(dirname "$0")/.."

for program in kubectl helm; do
  command -v "$program" >/dev/null || { echo "kube-test: $program is missing" >&2; exit 1; }
done
kubectl get --raw /readyz >/dev/null || { echo "kube-test: set KUBECONFIG to a cluster for this test, such as kind's" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CGO_ENABLED=0
go -C test build -trimpath -buildvcs=false -ldflags='-s -w' -o "$work/" ./agent ./kube/sink
go -C cmd/nixlring build -trimpath -buildvcs=false -ldflags='-s -w' -o "$work/nixlring" .
go -C test run ./kube/image -o "$work/agent.tar" -name localhost/nixl-kube-agent:test -entrypoint /agent "$work/agent:/agent" "$work/sink:/sink"
# The same image as in the Dockerfile.
go -C test run ./kube/image -o "$work/otelcol-nixl.tar" -name localhost/otelcol-nixl:test -entrypoint /usr/bin/otelcol-nixl \
  -user 65532:65532 -cmd --config=/etc/otelcol-nixl/config.yaml \
  "$PWD/dist/full/otelcol-nixl-full:/usr/bin/otelcol-nixl" "$PWD/examples/collector/agent.yaml:/etc/otelcol-nixl/config.yaml" \
  "$work/nixlring:/usr/bin/nixlring"
for image in agent otelcol-nixl; do
  ${KUBE_LOAD:-kind load image-archive} "$work/$image.tar"
done
KUBE_TEST=1 NIXLRING="$work/nixlring" go -C test test -count=1 -v -timeout 30m ./kube "$@"
