module github.com/nixl-otel/nixl-otel

go 1.25.0
