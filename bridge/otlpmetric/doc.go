// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package otlpmetric sets up a MeterProvider that exports over OTLP, in one
// call. It is for programs that have no OpenTelemetry pipeline yet. A program
// with a MeterProvider passes that to the packages of the bridge instead.
//
//	provider, err := otlpmetric.New(ctx, otlpmetric.WithServiceName("pipeline"))
//	if err != nil {
//		return err
//	}
//	defer func() {
//		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
//		defer cancel()
//		if err := provider.Shutdown(ctx); err != nil { // exports once more
//			log.Print(err)
//		}
//	}()
//	s, err := session.Open("telemetry", session.WithMeterProvider(provider))
//
// The call connects exporter, reader, resource and metric producers, which is
// easy to get wrong by hand:
//
//   - A producer must be given to the reader, or its metrics are lost. Pass it to
//     [WithProducers].
//   - If a producer returns an error, the SDK's reader exports nothing at all.
//     Here the error goes to OpenTelemetry's error handler, and the export goes
//     on.
//   - The SDK's exporters ignore OTEL_EXPORTER_OTLP_PROTOCOL. Here it selects the
//     exporter.
//   - Without an endpoint, the exporters expect TLS on this host. Here they
//     export to a local Collector without TLS, as OTLP specifies.
//
// # Installation
//
//	go get github.com/nixl-otel/nixl-otel/bridge/otlpmetric
//
// Until the first release, follow the section "Go programs" of the repository's
// README.md instead.
//
// # Environment
//
// OpenTelemetry's variables configure everything else. The most used ones:
//
//	OTEL_EXPORTER_OTLP_ENDPOINT  http://host:4317 (gRPC) or http://host:4318 (HTTP); https for TLS
//	OTEL_EXPORTER_OTLP_PROTOCOL  grpc (default) or http/protobuf
//	OTEL_EXPORTER_OTLP_HEADERS   key=value,key=value
//	OTEL_METRIC_EXPORT_INTERVAL  time between two exports, in ms; default 60000
//	OTEL_SERVICE_NAME            service.name
//	OTEL_RESOURCE_ATTRIBUTES     key=value,key=value
//
// Each OTEL_EXPORTER_OTLP_X also exists as OTEL_EXPORTER_OTLP_METRICS_X, which
// takes precedence. The documentation of [otlpmetricgrpc] and [otlpmetrichttp]
// lists them all. [New] rejects an endpoint without a scheme, such as
// localhost:4317, and an unknown protocol; the exporters log other invalid
// values and ignore them.
//
// # Shutdown
//
// [Provider.Shutdown] exports once more. Give it a context of its own with a
// deadline: the program's context has often ended by then, for example by a
// signal. The last export includes everything recorded before Shutdown, in
// whatever order sessions, producers and the provider are shut down. What is
// recorded after it isn't exported.
//
// # When the backend is away
//
// A failed export goes to OpenTelemetry's error handler, see
// [otel.SetErrorHandler]. Metrics are cumulative, so the next export includes
// what the failed one lost.
//
// [otel.SetErrorHandler]: https://pkg.go.dev/go.opentelemetry.io/otel#SetErrorHandler
// [otlpmetricgrpc]: https://pkg.go.dev/go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc
// [otlpmetrichttp]: https://pkg.go.dev/go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp
package otlpmetric
