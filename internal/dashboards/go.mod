// The generator of the dashboards, apart from the product's graph.
module github.com/nixl-otel/nixl-otel/internal/dashboards

go 1.26.0

require (
	github.com/grafana/grafana-foundation-sdk/go v0.0.7
	github.com/nixl-otel/nixl-otel v0.0.0
)

replace github.com/nixl-otel/nixl-otel => ../..
