#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Creates the pictures of `nixlring top`: docs/images/top.svg, top-detail.svg and
# top-256.svg. It runs simulated agents, the Collector, and `nixlring top` in tmux.
#
#   scripts/screenshot-top.sh [few | many]   the first two, or the last one, of 256 agents   [both]
#
#   WIDTH, HEIGHT  the size of the terminal   [168 x 21, the detail page 48, 256 agents 50]
set -euo pipefail
cd "$(dirname "$0")/.."

[[ -x dist/otelcol-nixl && -x bin/nixlring ]] || { echo "screenshot-top: run make build nixlring first" >&2; exit 1; }
command -v tmux >/dev/null || { echo "screenshot-top: tmux is missing; apt-get install tmux" >&2; exit 1; }
case "${1-both}" in
  both) scripts/screenshot-top.sh few; exec scripts/screenshot-top.sh many ;;
  few) height=${HEIGHT:-21} sort=name ;;
  many) height=${HEIGHT:-50} sort=p99 ;;
  *) echo "screenshot-top: $1 is neither few nor many" >&2; exit 1 ;;
esac
width=${WIDTH:-168}
dir=/tmp/nixl # visible in the picture
mkdir "$dir" || { echo "screenshot-top: $dir exists already; remove it" >&2; exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/nixl-screenshot.XXXXXX")
socket=nixl-screenshot-$$
pids=()
stop() {
  trap - EXIT
  tmux -L "$socket" kill-server 2>/dev/null || true
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait
  rm -rf "$work" "$dir"
}
trap stop EXIT

# The Collector leaves out the rings of bench, so that they fill up.
cat >"$work/config.yaml" <<CONFIG
receivers:
  nixl_shm: {directories: [$dir], exclude: ["bench-*"]}
exporters:
  debug: {verbosity: basic}
service:
  telemetry: {metrics: {level: none}, logs: {level: error}}
  pipelines: {metrics: {receivers: [nixl_shm], exporters: [debug]}}
CONFIG
dist/otelcol-nixl --config "$work/config.yaml" >"$work/collector.log" 2>&1 & pids+=($!)
tmux -L "$socket" -f /dev/null new-session -d -x "$width" -y "$height" \
  "env COLORTERM= TERM=screen-256color bin/nixlring top $dir --sort $sort"
sleep 3 # it must run before the agents register their memory

# agents PREFIX ARGUMENT... runs simulated agents.
seed=0
agents() {
  seed=$((seed + 1))
  bin/nixlring simulate "$dir" --no-consumer --quiet --seed "$seed" --name "$@" >/dev/null & pids+=($!)
}

# picture NAME writes the contents of the screen to docs/images/NAME.svg.
picture() {
  tmux -L "$socket" capture-pane -e -N -p >"$work/$1.ansi"
  go -C cmd/nixlring run ./internal/termsvg -title "nixlring top" <"$work/$1.ansi" >"docs/images/$1.svg"
  echo "docs/images/$1.svg"
}
keys() { for k in "$@"; do tmux -L "$socket" send-keys "$k"; sleep 0.3; done; }

few() {
  agents prefill --agents 4 --rate 900 --error-rate 0.0002
  agents decode --agents 4 --rate 320 --error-rate 0.0002 --scenario straggler
  agents kv-offload --agents 1 --rate 2600 --capacity 512 --error-rate 0
  agents vllm-legacy --agents 1 --rate 60 --layout v1 --error-rate 0
  agents canary --agents 1 --rate 40 --layout v3 --error-rate 0.06
  agents bench --agents 1 --rate 16 --error-rate 0
  sleep "${WARM_UP:-25}"
  keys Down Down
  picture top
  tmux -L "$socket" resize-window -x "$width" -y "${DETAIL_HEIGHT:-48}"
  keys / d e c o d e - 2 Enter Enter
  sleep "${WARM_UP_DETAIL:-70}"
  picture top-detail
}

# Eight of them fail often, so that they stand out.
many() {
  agents prefill --agents 96 --rate 40 --error-rate 0.0002
  agents decode --agents 144 --rate 20 --error-rate 0.0002
  agents kv-offload --agents 8 --rate 200 --error-rate 0
  agents canary --agents 8 --rate 40 --error-rate 0.04
  sleep "${WARM_UP:-25}"
  keys Home Down # the agent at the top has moved down since
  picture top-256
}

mkdir -p docs/images
"$1"
