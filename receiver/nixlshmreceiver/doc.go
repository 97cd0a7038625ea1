// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package nixlshmreceiver implements the Collector receiver nixl_shm. It drains the
// telemetry rings that NIXL agents write to shared memory, reads the stores of
// NIXL's prometheus_mp exporter, and reports the totals of each agent.
//
// The receiver has two clocks. It drains rings on the agents' run interval, because
// one interval can fill a ring, and it exports totals on the collection interval.
// README.md documents the configuration, and documentation.md the metrics.
package nixlshmreceiver

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml
