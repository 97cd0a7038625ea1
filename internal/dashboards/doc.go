// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package dashboards defines the project's dashboards, recording rules and alerts, and
// generates their files:
//
//   - dashboards for Grafana, with variables that select clusters, jobs, hosts and agents
//   - rules and alerts for Prometheus and vmalert
//
// The queries are PromQL with the same result in Prometheus and VictoriaMetrics. Both use the
// same metric names. A query of a histogram has two forms, joined by "or": one for buckets, and
// one for native histograms. See [histogram].
package dashboards

//go:generate go run ./gen ../../dashboards
