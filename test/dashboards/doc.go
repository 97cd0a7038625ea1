// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package dashboards tests the directory dashboards. Every query must return data in
// VictoriaMetrics and in Prometheus, and every alert in VictoriaMetrics, when the real
// pipeline sends metrics to them. Prometheus' promtool evaluates the alerts for fleets
// of agents with and without problems. The sums in both must be what the agents wrote,
// also after restarts.
//
// `make dashboards-test` builds the programs and sets these environment variables
// to their paths:
//
//	OTELCOL_NIXL      the Collector
//	NIXLRING          nixlring
//	VICTORIA_METRICS  VictoriaMetrics
//	PROMETHEUS        Prometheus
//	PROMTOOL          promtool
//
// A test is skipped if one of its variables isn't set.
package dashboards
