#!/usr/bin/env bash
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Lets systemd check the units in deploy/systemd, with and without the drop-ins.
set -euo pipefail
cd "$(dirname "$0")/../deploy/systemd"

command -v systemd-analyze >/dev/null || { echo "no systemd: the units aren't checked"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The program need not be installed here.
sed 's#^ExecStart=otelcol-nixl #ExecStart=/bin/true #' otelcol-nixl.service >"$work/otelcol-nixl.service"
printf '[Service]\nExecStart=/bin/true\n' >"$work/agent.service"
mkdir "$work"/{agent,otelcol-nixl}.service.d
cp agent.conf "$work/agent.service.d"

verify() {
  echo "verify $*"
  local says
  says=$(systemd-analyze verify --man=no "$work"/*.service 2>&1) || { echo "$says" >&2; exit 1; }
  # systemd only warns about settings that it doesn't know.
  ! grep -F "$work" <<<"$says" >&2 || exit 1
}
verify otelcol-nixl.service agent.conf
for drop_in in several-users.conf processes.conf; do
  cp "$drop_in" "$work/otelcol-nixl.service.d"
  verify "$drop_in"
  rm "$work/otelcol-nixl.service.d/$drop_in"
done
