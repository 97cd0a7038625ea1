#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Has systemd check the units of deploy/systemd, also with the drop-in.
set -euo pipefail
cd "$(dirname "$0")/../deploy/systemd"

command -v systemd-analyze >/dev/null || { echo "no systemd: the units aren't checked"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# It asks for the program, which needn't be installed here.
sed 's#/usr/local/bin/otelcol-nixl #/bin/true #' otelcol-nixl.service >"$work/otelcol-nixl.service"
printf '[Service]\nExecStart=/bin/true\n' >"$work/agent.service"
mkdir "$work"/{agent,otelcol-nixl}.service.d
cp agent.conf "$work/agent.service.d"

verify() {
  echo "verify $*"
  local says
  says=$(systemd-analyze verify --man=no "$work"/*.service 2>&1) || { echo "$says" >&2; exit 1; }
  # What it doesn't know it only mentions.
  ! grep -F "$work" <<<"$says" >&2 || exit 1
}
verify otelcol-nixl.service agent.conf
cp several-users.conf "$work/otelcol-nixl.service.d"
verify several-users.conf
