// Package dashboards tests what is in the folder dashboards: that every query
// and alert gives data in VictoriaMetrics and in Prometheus when the real
// pipeline has filled them, and that `make demo` shows what it should.
//
// The environment names the programs; `make dashboards-test` builds them and
// sets it:
//
//	OTELCOL_NIXL      the Collector
//	NIXLRING          the operator's tool
//	VICTORIA_METRICS  VictoriaMetrics
//	PROMETHEUS        Prometheus
//	PROMTOOL          its promtool
//	CHROMIUM          a browser
//
// A test whose programs aren't there is skipped.
package dashboards
