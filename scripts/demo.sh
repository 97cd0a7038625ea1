#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Shows an incident in a browser, without a GPU: `make demo`. It runs simulated agents
# of several layouts, the Collector, and VictoriaMetrics with dashboards.
#
#   SCENARIO  what the agents show; see `bin/nixlring simulate --help`    [straggler]
#   PORT      the port of the dashboards, on loopback                     [8428]
#   AGENTS    the number of agents; one of them has a failing peer        [8]
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

port=${PORT:-8428} agents=${AGENTS:-8} scenario=${SCENARIO:-straggler}
check_port "$port"
[[ $agents =~ ^[1-9][0-9]{0,2}$ && $agents -ge 2 ]] || die "AGENTS=$agents is not a number of agents from 2 to 999"
backend=$((port < 65000 ? port + 1 : port - 999)) # the port of VictoriaMetrics
while listening "$backend"; do backend=$((backend + 1)); done

temporary=$(mktemp -d "${TMPDIR:-/tmp}/nixl-demo.XXXXXX")
mkdir "$temporary"/{rings,metrics}
url=http://127.0.0.1:$port

# simulate SCENARIO AGENTS LAYOUT NAME runs agents with the names NAME-0, NAME-1, …
simulate() {
  start "a simulator" bin/nixlring simulate "$temporary/rings" --scenario "$1" --agents "$2" --layout "$3" --name "$4" \
    --error-rate 0.002 --quiet >"$temporary/$4.log"
}

# ask QUERY prints the backend's answer, a line of JSON.
ask() {
  local answer=''
  exec 3<>"/dev/tcp/127.0.0.1/$port"
  printf 'GET /api/v1/query?query=%s HTTP/1.0\r\n\r\n' "$1" >&3
  answer=$(tail -n 1 <&3)
  exec 3>&-
  say "$answer"
}

# They stop in this order, so that the Collector can export the agents' last events.
simulate "$scenario" $((agents - 1)) mixed worker
simulate failing-peer 1 v4 offload
start "the Collector" env NIXL_TELEMETRY_DIR="$temporary/rings" OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:$backend/opentelemetry" HEALTH_PORT=0 \
  dist/otelcol-nixl --config=examples/collector/otlp-http.yaml \
  --config='yaml:receivers::nixl_shm::collection_interval: 1s' \
  --config='yaml:service::telemetry::logs::level: error' \
  --config="yaml:service::telemetry::metrics::readers: [{periodic: {interval: 1000, exporter: {otlp: {protocol: http/protobuf, endpoint: 'http://127.0.0.1:$backend/opentelemetry/v1/metrics'}}}}]"
start "VictoriaMetrics" bin/victoria-metrics -storageDataPath="$temporary/metrics" -retentionPeriod=1d \
  -httpListenAddr="127.0.0.1:$backend" -opentelemetry.usePrometheusNaming -search.latencyOffset=0s -loggerLevel=ERROR \
  -vmui.customDashboardsPath=dashboards/victoriametrics 2>"$temporary/VictoriaMetrics.log"
wait_for "$backend"
start "the page" bin/demo -listen="127.0.0.1:$port" -backend="http://127.0.0.1:$backend"
say "$agents simulated agents write rings in $temporary/rings"
wait_for "$port"

# Wait until each agent has enough points for a curve.
say "waiting for their metrics"
until [[ $(ask 'count(count_over_time(nixl_transfer_duration_seconds_count[1m])>=15)') == *"\"$agents\"]"* ]]; do
  alive
  sleep 0.5
done
# Only a relative time range moves with each refresh. The other parameters keep the
# queries out of the legends.
page="dashboards?g0.relative_time=last_5_minutes&legend_group=host_name&legend_hide_stats=true"
say "" "Dashboard: $url/vmui/#/$page   (Ctrl-C stops everything)"
say "It refreshes every 5 seconds." ""
wait -n "${pids[@]}"
alive
