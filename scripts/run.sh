#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# scripts/run.sh run    runs the Collector on a directory with NIXL telemetry rings
# scripts/run.sh demo   shows simulated agents on the page of nixlring web, which needs no Collector
#
#   DIR       the directory of `make run`                        [NIXL_TELEMETRY_DIR, else /tmp]
#   SIMULATE  the number of agents to simulate, in a temporary directory; AGENTS for `make demo`   [8]
#   SCENARIO  what they show; see `bin/nixlring simulate --help`  [`make demo`: straggler]
#   PORT      on loopback, of the Prometheus page [9464], or of the page of `make demo` [any free port]
set -euo pipefail
cd "$(dirname "$0")/.."

target=$1 scenario=${SCENARIO:-} pids=() temporary=
die() { printf "make $target: %s\n" "$@" >&2; exit 1; }
listening() { (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# start runs a command in its own process group, so that Ctrl-C reaches only this script. It then stops
# the simulator first, and the Collector drains the rings one last time.
start() { set -m; "$@" & pids+=($!); set +m; }
stop() {
  trap - EXIT
  trap 'kill -KILL "${pids[@]}"' INT TERM HUP # on a second signal
  for pid in "${pids[@]}"; do kill -TERM "$pid" 2>/dev/null && wait "$pid" || true; done
  [[ -z $temporary ]] || rm -rf "$temporary"
}
trap stop EXIT
trap 'exit 0' INT
trap 'exit 143' TERM HUP

# await COMMAND waits until it succeeds, and ends the script if a process has ended.
await() {
  until "$@"; do
    kill -0 "${pids[@]}" 2>/dev/null || die "a process has ended"
    sleep 0.1
  done
}

if [[ $target == demo ]]; then
  port=${PORT:-0} agents=${AGENTS:-8} scenario=${scenario:-straggler}
  [[ $agents =~ ^[1-9][0-9]{0,2}$ ]] || die "AGENTS=$agents is not a number of agents from 1 to 999"
else
  port=${PORT:-9464} agents=${SIMULATE:-} dir=${DIR:-${NIXL_TELEMETRY_DIR:-/tmp}}
  [[ -z $agents || $agents =~ ^[1-9][0-9]{0,3}$ ]] || die "SIMULATE=$agents is not a number of agents"
  [[ -z $agents$scenario || -z ${DIR:-} ]] || die "simulated agents use a temporary directory: set DIR or SIMULATE, not both"
fi
[[ $port =~ ^[0-9]{1,5}$ && $port -le 65535 ]] || die "PORT=$port is not a port"
! listening "$port" || die "port $port on 127.0.0.1 is taken; choose another, such as PORT=$((port < 65535 ? port + 1 : 9465))"

if [[ -n $agents$scenario ]]; then
  # In memory, as real agents' rings should be. A container's /dev/shm often has only 64 MiB, enough for 1,000 rings.
  memory=/dev/shm
  [[ -w $memory && ${agents:-1} -le 500 ]] || memory=/tmp
  temporary=$(mktemp -d "${TMPDIR:-$memory}/nixl-simulate.XXXXXX")
  dir=$temporary/rings
  mkdir "$dir"
  simulate=(bin/nixlring simulate "$dir" ${agents:+--agents "$agents"})
  if [[ -n $scenario ]]; then simulate+=(--scenario "$scenario"); else simulate+=(--rate 1000); fi
fi

if [[ $target == demo ]]; then
  start "${simulate[@]}" --name worker >"$temporary/totals"
  start bin/nixlring web "$dir" --listen "127.0.0.1:$port" >"$temporary/address"
  await test -s "$temporary/address"
  printf '\n%s\n' "Page: $(<"$temporary/address")   (Ctrl-C stops everything)" \
    "It names the cause within seconds; incidents that begin during a run, within two minutes."
else
  if [[ -n $temporary ]]; then
    start "${simulate[@]}" --no-consumer
  else
    [[ -e $dir ]] || die "there is no directory $dir; agents don't create it, so run: mkdir -p $dir"
    [[ -d $dir ]] || die "$dir is not a directory; set DIR to the directory that contains the rings"
    rings=$(bin/nixlring ls "$dir") # it prints the reason if it fails
    if [[ -n $rings ]]; then
      printf '%s\n' "$rings"
    else
      printf '\n%s\n\n' "The Collector opens a ring as soon as an agent creates one. To simulate agents: make run SIMULATE=4"
    fi
  fi
  [[ $dir == /* ]] || dir=$PWD/$dir # the receiver requires an absolute path
  export NIXL_TELEMETRY_DIR=$dir PORT=$port
  start dist/otelcol-nixl --config=examples/collector/local.yaml
  await listening "$port"
  printf '\n%s\n\n' "Prometheus page: http://127.0.0.1:$port/metrics   (Ctrl-C stops)"
fi
wait -n "${pids[@]}" || die "a process has ended"
