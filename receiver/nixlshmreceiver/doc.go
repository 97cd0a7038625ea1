// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package nixlshmreceiver is a receiver for the OpenTelemetry Collector that
// drains the telemetry rings of NIXL agents and reports the totals of each
// agent. Its type is nixl_shm.
//
// Rings are drained on the agents' run interval, as a ring overflows within
// one; the totals are written on the collection interval. See the README for
// the configuration, and documentation.md for the metrics.
package nixlshmreceiver
