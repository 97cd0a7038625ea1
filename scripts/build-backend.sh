#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds bin/victoria-metrics, the backend of `make demo`, and bin/demo, which
# serves its page, from internal/demo.
set -euo pipefail
cd "$(dirname "$0")/.."

# progress counts the packages and modules that go names, where somebody looks,
# and lets the rest through: errors.
progress() {
  awk -v shown="$([[ -t 2 ]] && echo 1)" '
    /^[^ #:]+$/ || /^go: downloading / {
      n++
      if (shown) { printf "\r  %d packages", n > "/dev/stderr"; fflush() }
      next
    }
    {
      if (shown && n) print "" > "/dev/stderr"
      n = 0
      print > "/dev/stderr"
    }
    END { if (shown && n) print "" > "/dev/stderr" }'
}

[[ -e bin/victoria-metrics ]] || echo "building VictoriaMetrics (a minute on a new machine)" >&2
# Its pure Go parts do: no C compiler is needed.
CGO_ENABLED=0 GOWORK=off go build -C internal/demo -v -trimpath -buildvcs=false -ldflags='-s -w' \
  -o "$PWD/bin/victoria-metrics" github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics 2>&1 | progress
CGO_ENABLED=0 GOWORK=off go build -C internal/demo -trimpath -buildvcs=false -ldflags='-s -w' -o "$PWD/bin/demo" .
