// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package dashboards describes the project's dashboards, recording rules and
// alerts once, and writes them as files:
//
//   - dashboards for Grafana, with variables that select clusters, jobs, hosts
//     and agents;
//   - dashboards for VictoriaMetrics' own page, which has no variables and
//     writes numbers without a prefix;
//   - rules and alerts for Prometheus and vmalert.
//
// The queries are PromQL that Prometheus and VictoriaMetrics evaluate alike,
// over the names that both give to the metrics of the catalog. A query of a
// histogram has two forms, joined by "or": one for buckets, and one for native
// histograms. See [histogram].
package dashboards

//go:generate go run ./gen ../../dashboards
