#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds Prometheus, which takes minutes on a new machine, and runs the tests of the
# dashboards and of the page of nixlring web. A test is skipped, with a message, if the
# program that it needs is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

[[ -e bin/prometheus ]] || echo "building Prometheus (minutes on a new machine)" >&2
for program in prometheus promtool; do
  CGO_ENABLED=0 GOWORK=off go build -C test/backends -trimpath -buildvcs=false -tags=remove_all_sd -ldflags='-s -w' \
    -o "$PWD/bin/$program" "github.com/prometheus/prometheus/cmd/$program"
done

CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[[ -n $CHROMIUM ]] || echo "no Chromium: the page isn't tested" >&2
DASHBOARD_LINTER=$(command -v dashboard-linter || true)
[[ -n $DASHBOARD_LINTER ]] || echo "no dashboard-linter: Grafana's files aren't linted" >&2

export OTELCOL_NIXL=$PWD/dist/otelcol-nixl NIXLRING=$PWD/bin/nixlring VICTORIA_METRICS=$PWD/bin/victoria-metrics
export PROMETHEUS=$PWD/bin/prometheus PROMTOOL=$PWD/bin/promtool CHROMIUM DASHBOARD_LINTER
exec go -C test test -count=1 -p 1 -parallel 4 -timeout 20m ./dashboards ./web "$@" # the cache ignores files outside a module
