#!/bin/sh
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Removes the configuration and what the Collector wrote when dpkg purges the
# package; rpm has no such step. The users nixl and otelcol-nixl stay: a new user
# could otherwise get the same number and own the agents' files.
set -e

if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
if [ "$1" = purge ]; then
  rm -rf /etc/otelcol-nixl /var/lib/otelcol-nixl
  rmdir /run/nixl 2>/dev/null || true # unless it has rings
fi
