#!/bin/sh
# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0
#
# Stops the Collector before its files are removed. An upgrade restarts it later.
set -e

# dpkg passes "remove" or "upgrade", rpm the number of versions that remain.
case "$1" in
  remove | 0) ;;
  *) exit 0 ;;
esac

if [ -d /run/systemd/system ]; then
  systemctl disable --now otelcol-nixl.service
fi
