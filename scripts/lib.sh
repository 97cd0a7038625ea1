# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0

# Functions for the scripts that run several processes in the foreground.
# shellcheck shell=bash

say() { printf '%s\n' "$@"; }
die() {
  local script=${0##*/}
  printf "make ${script%.sh}: %s\n" "$@" >&2
  exit 1
}

# listening PORT reports whether a process listens on this port of loopback.
listening() { (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# check_port PORT ends the script if PORT isn't a port, or is taken.
check_port() {
  [[ $1 =~ ^[0-9]{1,5}$ && $1 -ge 1 && $1 -le 65535 ]] || die "PORT=$1 is not a port"
  ! listening "$1" || die "port $1 on 127.0.0.1 is taken; choose another, such as PORT=$(($1 < 65535 ? $1 + 1 : 9465))"
}

# The script ends with its parent, and the processes that it starts with the script, even if
# these are killed. PARENT, the PID of the parent, also shows that the script is set up.
with_parent=()
if command -v setpriv >/dev/null; then
  with_parent=(setpriv --pdeathsig TERM --)
  [[ -n ${PARENT:-} ]] || PARENT=$PPID exec "${with_parent[@]}" "$PWD/scripts/${0##*/}" "$@"
  [[ $PARENT == "$PPID" ]] || exit 143 # it ended before setpriv ran
  unset PARENT
fi

# make_temporary AGENTS makes the directory $temporary for the rings of this many agents; stop removes it. Without TMPDIR, it is
# in memory, as real agents' rings should be. A container's /dev/shm often has only 64 MiB, enough for 1,000 rings.
make_temporary() {
  local dir=/dev/shm
  [[ -w $dir && $1 -le 500 ]] || dir=/tmp
  temporary=$(mktemp -d "${TMPDIR:-$dir}/nixl-simulate.XXXXXX")
}

# start NAME COMMAND runs COMMAND in the background, in its own process group. Ctrl-C
# therefore reaches only the script, which then stops the processes in the order in
# which it started them.
names=() pids=() temporary=''
start() {
  names+=("$1")
  shift
  set -m
  "${with_parent[@]}" "$@" &
  set +m
  pids+=($!)
}

stop() {
  trap - EXIT
  trap 'kill -KILL "${pids[@]}" 2>/dev/null' INT TERM HUP # on a second signal
  local pid
  for pid in "${pids[@]}"; do
    kill -TERM "$pid" 2>/dev/null || true
    wait "$pid" || true
  done
  [[ -z $temporary ]] || rm -rf "$temporary"
}
trap stop EXIT
trap 'exit 0' INT # the usual way to stop it
trap 'exit 143' TERM HUP

# alive ends the script if one of its processes has ended, and prints the end of its
# output, $temporary/NAME.log.
alive() {
  local i
  for i in "${!pids[@]}"; do
    kill -0 "${pids[i]}" 2>/dev/null && continue
    [[ ! -e $temporary/${names[i]}.log ]] || tail -n 5 "$temporary/${names[i]}.log" >&2
    die "${names[i]} has ended"
  done
}

# wait_for PORT waits until a process listens on this port.
wait_for() {
  until listening "$1"; do
    alive
    sleep 0.1
  done
}
