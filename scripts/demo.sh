#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Shows an incident in a browser, without a GPU: `make demo`. It runs simulated agents, and the
# page of nixlring web, which reads their rings. A Collector takes minutes to build, and the page
# would look the same.
#
#   SCENARIO  what the agents show; see `bin/nixlring simulate --help`    [straggler]
#   PORT      the port of the page, on loopback                           [any free port]
#   AGENTS    the number of agents                                        [8]
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

port=${PORT:-0} agents=${AGENTS:-8} scenario=${SCENARIO:-straggler}
[[ $port == 0 ]] || check_port "$port"
[[ $agents =~ ^[1-9][0-9]{0,2}$ ]] || die "AGENTS=$agents is not a number of agents from 1 to 999"

make_temporary "$agents"
rings=$temporary/rings
mkdir "$rings"

start "the simulator" bin/nixlring simulate "$rings" --scenario "$scenario" --agents "$agents" --name worker --quiet >"$temporary/the simulator.log" 2>&1
start "the page" bin/nixlring web "$rings" --listen "127.0.0.1:$port" --quiet >"$temporary/address" 2>"$temporary/the page.log"
until [[ -s $temporary/address ]]; do
  alive
  sleep 0.1
done
say "$agents simulated agents write rings in $rings" "" \
  "Page: $(<"$temporary/address")   (Ctrl-C stops everything)" "" "It names the cause within seconds; incidents that begin during a run, within two minutes."
wait -n "${pids[@]}" || alive
