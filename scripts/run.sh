#!/usr/bin/env bash
# Runs the Collector on a directory of NIXL telemetry rings; see `make help`.
#
#   DIR       the directory; without it NIXL_TELEMETRY_DIR, then /tmp
#   SIMULATE  instead of DIR: how many agents to simulate, in a directory of their own
#   PORT      of the Prometheus page on loopback
set -euo pipefail
cd "$(dirname "$0")/.."

port=${PORT:-9464}
dir=${DIR:-${NIXL_TELEMETRY_DIR:-${NIXL_TELEMETRY_EXPORTER_OUTPUT_PATH:-/tmp}}}
agents=${SIMULATE:-}

say() { printf '%s\n' "$@"; }
die() { printf 'make run: %s\n' "$@" >&2; exit 1; }
listening() { (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }

# start COMMAND runs it in the background, in a process group of its own: Ctrl-C
# reaches this script alone, which then stops what it started in the right order.
start() {
  set -m
  "$@" &
  set +m
}

collector='' simulator='' temporary=''
stop() {
  trap - EXIT
  trap 'kill -KILL $simulator $collector 2>/dev/null' INT TERM HUP # asked twice
  # The simulator first: the Collector drains once more when it is told to stop.
  for pid in $simulator $collector; do
    kill -TERM "$pid" 2>/dev/null || true
    wait "$pid" || true
  done
  [[ -z $temporary ]] || rm -rf "$temporary"
}
trap stop EXIT
trap 'exit 0' INT # the usual way to end it
trap 'exit 143' TERM HUP

[[ $port =~ ^[0-9]{1,5}$ && $port -ge 1 && $port -le 65535 ]] || die "PORT=$port is not a port"
[[ -z $agents || $agents =~ ^[1-9][0-9]{0,3}$ ]] || die "SIMULATE=$agents is not a number of agents"
[[ -z $agents || -z ${DIR:-} ]] || die "simulated agents get a directory of their own: give DIR or SIMULATE, not both"
! listening || die "port $port on 127.0.0.1 is taken; choose another, like make run PORT=9465"

if [[ -n $agents ]]; then
  temporary=$(mktemp -d "${TMPDIR:-/tmp}/nixl-simulate.XXXXXX")
  dir=$temporary
  say "simulating $agents agents in $dir"
  start bin/nixlring simulate "$dir" --agents "$agents" --rate 1000 --quiet
  simulator=$!
else
  [[ -d $dir ]] || die "there is no directory $dir; an agent doesn't make it, so make it first: mkdir -p $dir"
  bin/nixlring ls --require "$dir" || {
    (($? == 3)) || exit 1 # it has said why
    say "" "A ring is picked up as soon as it is there. To see some now: make run SIMULATE=4" ""
  }
fi

export NIXL_TELEMETRY_DIR=$dir PORT=$port
start dist/otelcol-nixl --config=examples/collector/local.yaml
collector=$!
until listening; do
  kill -0 "$collector" 2>/dev/null || die "the Collector didn't start"
  sleep 0.1
done
say "" "Prometheus page: http://127.0.0.1:$port/metrics   (Ctrl-C stops)" ""
wait -n $collector $simulator # whichever ends first ends the other
