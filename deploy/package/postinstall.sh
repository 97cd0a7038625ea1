#!/bin/sh
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Creates the users and the directory of the rings. It doesn't start the Collector:
# the endpoint in /etc/otelcol-nixl/env has to be set first.
set -e

# dpkg passes "configure" and the version that was installed before, rpm the
# number of versions that are installed now.
case "$1" in
  configure | [0-9]*) ;;
  *) exit 0 ;;
esac

systemd-sysusers otelcol-nixl.conf
systemd-tmpfiles --create otelcol-nixl.conf
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart otelcol-nixl.service
fi
if [ "$1" = 1 ] || { [ "$1" = configure ] && [ -z "$2" ]; }; then
  echo "Set the endpoint in /etc/otelcol-nixl/env, then run: systemctl enable --now otelcol-nixl"
fi
