#!/usr/bin/env bash
# Makes the pictures of `nixlring top`, docs/images/top.svg and top-detail.svg:
# simulated agents, the Collector, and the real program in a terminal of tmux.
#
#   COLUMNS, LINES  the size of the terminal   [156 x 21, the detail page 34]
set -euo pipefail
cd "$(dirname "$0")/.."

[[ -x dist/otelcol-nixl && -x bin/nixlring ]] || { echo "screenshot-top: run make build nixlring first" >&2; exit 1; }
command -v tmux >/dev/null || { echo "screenshot-top: tmux is missing; apt-get install tmux" >&2; exit 1; }

columns=${COLUMNS:-156}
lines=${LINES:-21}
work=$(mktemp -d "${TMPDIR:-/tmp}/nixl-screenshot.XXXXXX")
dir=/tmp/nixl
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
mkdir "$dir" || { echo "screenshot-top: the picture shows $dir, so that it must not be there yet" >&2; exit 1; }

# agents PREFIX ARGUMENT... runs some.
agents() { bin/nixlring simulate "$dir" --quiet --seed 7 --name "$@" >/dev/null & pids+=($!); }
agents prefill --agents 4 --rate 900 --error-rate 0.0002
agents decode --agents 4 --rate 320 --error-rate 0.0002
agents kv-offload --agents 1 --rate 2600 --capacity 512 --error-rate 0
agents vllm-legacy --agents 1 --rate 60 --layout v1 --error-rate 0
agents canary --agents 1 --rate 40 --layout v3 --error-rate 0.06
agents bench --agents 1 --rate 16 --error-rate 0

# Nobody reads the rings of bench.
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

tmux -L "$socket" -f /dev/null new-session -d -x "$columns" -y "$lines" \
  "env COLORTERM= TERM=screen-256color bin/nixlring top $dir"

# picture NAME writes what is on the screen.
picture() {
  tmux -L "$socket" capture-pane -e -N -p >"$work/$1.ansi"
  go run ./internal/termsvg -title "nixlring top" <"$work/$1.ansi" >"docs/images/$1.svg"
  echo "docs/images/$1.svg"
}
keys() { for k in "$@"; do tmux -L "$socket" send-keys "$k"; sleep 0.3; done; }

sleep "${WARM_UP:-25}"
mkdir -p docs/images
keys Down Down
picture top
tmux -L "$socket" resize-window -x "$columns" -y "${DETAIL_LINES:-34}"
keys / p r e f i l l - 1 Enter Enter
sleep "${WARM_UP_DETAIL:-25}"
picture top-detail
