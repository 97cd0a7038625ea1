#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs a tool for `go test -toolexec`, and compiles only this repository's packages
# with counters for fuzzing. After each execution, the fuzzing engine clears and
# compares all counters, and nine of ten would belong to the standard library.
set -euo pipefail

tool="$1"
shift
if [[ ${tool##*/} == compile ]]; then
  if [[ ${1:-} == -V=full ]]; then
    echo "$("$tool" "$@") without-dependencies" # part of the key of cached packages
    exit
  fi
  if [[ ${TOOLEXEC_IMPORTPATH:-} != github.com/nixl-otel/nixl-otel/* ]]; then
    args=()
    for arg in "$@"; do
      [[ $arg == -d=libfuzzer ]] || args+=("$arg")
    done
    set -- "${args[@]}"
  fi
fi
exec "$tool" "$@"
