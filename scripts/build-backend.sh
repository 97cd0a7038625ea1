#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds the backend of `make demo`, bin/victoria-metrics, and the program that serves
# its page, bin/demo, from internal/demo.
set -euo pipefail
cd "$(dirname "$0")/.."

# progress replaces the list of packages and modules that go prints by a counter, if
# the output is a terminal, and prints all other lines, which are errors.
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
# The demo doesn't need the parts in C.
CGO_ENABLED=0 GOWORK=off go build -C internal/demo -v -trimpath -buildvcs=false -ldflags='-s -w' \
  -o "$PWD/bin/victoria-metrics" github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics 2>&1 | progress
CGO_ENABLED=0 GOWORK=off go build -C internal/demo -trimpath -buildvcs=false -ldflags='-s -w' -o "$PWD/bin/demo" .
