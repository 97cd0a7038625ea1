// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package dashboards tests the directory dashboards. Every query and alert must
// return data in VictoriaMetrics and in Prometheus when the real pipeline sends
// metrics to them. The sums in the backends must be what the agents wrote, also after
// restarts.
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
