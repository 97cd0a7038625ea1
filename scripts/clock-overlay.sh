#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Writes an overlay for the go command, with which programs have a clock that is DAYS ahead, and
# prints its path:
#
#   go test -overlay "$(scripts/clock-overlay.sh DAYS)" ./...
#
# The kernel's clock stays, so the times of files are shifted, too. In a synctest bubble, time.Now isn't.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=$((${1:?DAYS is missing} * 24 * 60 * 60))
source=$(go env GOROOT)/src
overlay=$PWD/bin/_clock # the go command ignores directories with an underscore
rm -rf "$overlay"
mkdir -p "$overlay"
entries=()

# shift_file FILE EDIT replaces a file with its edited copy.
shift_file() {
  local copy=$overlay/${#entries[@]}_${1##*/}
  sed "$2" "$1" >"$copy"
  ! cmp --silent "$1" "$copy" || { echo "clock-overlay: this version of Go has another $1; change this script" >&2; exit 1; }
  entries+=("\"$1\": \"$copy\"")
}
shift_file "$source/time/time.go" "/^func Now() Time {/,/^}/ s/runtimeNow()$/&; if !runtimeIsBubbled() { sec += $seconds }/"
shift_file "$source/os/stat_linux.go" "s/= time.Unix(fs.sys.Mtim.Unix())/&.Add($seconds * time.Second)/"
shift_file "$source/os/file_posix.go" "s/NsecToTimespec(t.UnixNano())/NsecToTimespec(t.Add(-$seconds * time.Second).UnixNano())/"
shift_file "$PWD/internal/files/dir_linux.go" "s/time.Unix(st.Mtim.Unix())/&.Add($seconds * time.Second)/"

printf -v list '%s, ' "${entries[@]}"
printf '{"Replace": {%s}}\n' "${list%, }" >"$overlay/overlay.json"
echo "$overlay/overlay.json"
