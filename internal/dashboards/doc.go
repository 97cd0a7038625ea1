// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package dashboards defines the project's dashboards for Grafana, with variables that select clusters, jobs, hosts
// and agents, and generates their files. The recording rules and alerts are files of their own in dashboards/.
//
// The queries are PromQL with the same result in Prometheus and VictoriaMetrics. Both use the
// same metric names. A query of a histogram has two forms, joined by "or": one for buckets, and
// one for native histograms. See [histogram].
package dashboards

//go:generate go run ./gen ../../dashboards
