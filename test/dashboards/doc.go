// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package dashboards tests what is in the folder dashboards: that every query
// and alert returns data in VictoriaMetrics and in Prometheus when the real
// pipeline has filled them, and that `make demo` shows what it should.
//
// The environment names the programs; `make dashboards-test` builds them and
// sets it:
//
//	OTELCOL_NIXL      the Collector
//	NIXLRING          the operator's tool
//	VICTORIA_METRICS  VictoriaMetrics
//	DEMO              what serves its page for the demo
//	PROMETHEUS        Prometheus
//	PROMTOOL          its promtool
//	CHROMIUM          a browser
//	DASHBOARD_LINTER  Grafana's dashboard-linter
//
// A test whose programs aren't there is skipped.
package dashboards
