// Package dashboards describes the project's dashboards once, and writes them
// as the files of each program that draws them:
//
//   - Grafana's JSON, with variables by which its reader chooses hosts and
//     agents;
//   - the JSON of VictoriaMetrics' own page, which has no variables and writes
//     numbers without a prefix.
//
// The queries are PromQL that VictoriaMetrics and Prometheus understand alike,
// over the names that both give to the metrics of the catalog.
package dashboards

//go:generate go run ./gen ../../dashboards
