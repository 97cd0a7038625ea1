#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs the Collector on a directory with NIXL telemetry rings: `make run`.
#
#   DIR       the directory                                     [NIXL_TELEMETRY_DIR, else /tmp]
#   SIMULATE  the number of agents to simulate, in a temporary directory
#   SCENARIO  what they show; see `bin/nixlring simulate --help`
#   PORT      the port of the Prometheus page, on loopback      [9464]
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

port=${PORT:-9464}
dir=${DIR:-${NIXL_TELEMETRY_DIR:-${NIXL_TELEMETRY_EXPORTER_OUTPUT_PATH:-/tmp}}}
agents=${SIMULATE:-} scenario=${SCENARIO:-}

check_port "$port"
[[ -z $agents || $agents =~ ^[1-9][0-9]{0,3}$ ]] || die "SIMULATE=$agents is not a number of agents"
[[ -z $agents$scenario || -z ${DIR:-} ]] || die "simulated agents use a temporary directory: set DIR or SIMULATE, not both"

if [[ -n $agents$scenario ]]; then
  if [[ -n $scenario ]]; then traffic=(--scenario "$scenario"); else traffic=(--rate 1000); fi
  [[ -z $agents ]] || traffic+=(--agents "$agents")
  make_temporary "${agents:-1}"
  dir=$temporary
  say "simulating ${agents:+$agents }agents in $dir"
  # The simulator stops before the Collector, which then drains the rings one last time.
  start "the simulator" bin/nixlring simulate "$dir" --no-consumer "${traffic[@]}" --quiet
else
  [[ -d $dir || ! -e $dir ]] || die "$dir is not a directory; set DIR to the directory that contains the rings"
  [[ -d $dir ]] || die "there is no directory $dir; agents don't create it, so run: mkdir -p $dir"
  bin/nixlring ls --require "$dir" || {
    (($? == 3)) || exit 1 # nixlring has printed the reason
    say "" "The Collector opens a ring as soon as an agent creates one. To simulate agents: make run SIMULATE=4" ""
  }
fi

[[ $dir == /* ]] || dir=$PWD/$dir # the receiver requires an absolute path
export NIXL_TELEMETRY_DIR=$dir PORT=$port
start "the Collector" dist/otelcol-nixl --config=examples/collector/local.yaml
wait_for "$port"
say "" "Prometheus page: http://127.0.0.1:$port/metrics   (Ctrl-C stops)" ""
wait -n "${pids[@]}" || alive # if one process ends, the script ends the other
