// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package otlpmetric sets up a MeterProvider that exports over OTLP in one call. It is
// for programs without an OpenTelemetry pipeline. Programs that already have a
// MeterProvider don't need this package.
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
// [New] creates the exporter, the reader and the resource, and connects metric producers.
// It differs from the SDK's defaults:
//
//   - Metric producers are passed to the reader by [WithProducers]. Without this, their
//     metrics are lost.
//   - If a producer returns an error, the error goes to OpenTelemetry's error handler,
//     and the export continues. The SDK's reader exports nothing.
//   - OTEL_EXPORTER_OTLP_PROTOCOL selects the exporter. The SDK's exporters ignore it.
//   - Without an endpoint, it exports to a local Collector without TLS, as OTLP
//     specifies. The SDK's exporters use TLS.
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
// OpenTelemetry's environment variables configure everything else. The most common ones
// are:
//
//	OTEL_EXPORTER_OTLP_ENDPOINT  http://host:4317 (gRPC) or http://host:4318 (HTTP); https for TLS
//	OTEL_EXPORTER_OTLP_PROTOCOL  grpc (default) or http/protobuf
//	OTEL_EXPORTER_OTLP_HEADERS   key=value,key=value
//	OTEL_METRIC_EXPORT_INTERVAL  time between two exports, in ms (default 60000)
//	OTEL_SERVICE_NAME            service.name
//	OTEL_RESOURCE_ATTRIBUTES     key=value,key=value
//
// For each OTEL_EXPORTER_OTLP_X, there is also OTEL_EXPORTER_OTLP_METRICS_X, which takes
// precedence. For a complete list, see the documentation of [otlpmetricgrpc] and
// [otlpmetrichttp]. [New] rejects an endpoint without a scheme, such as localhost:4317,
// and an unknown protocol. The exporters log and ignore other invalid values.
//
// # Shutdown
//
// [Provider.Shutdown] exports once more. Pass it a new context with a deadline, because
// the program's context has often been canceled by then, for example by a signal. The
// last export includes everything recorded before Shutdown. Sessions, agents and
// producers can be closed before or after Shutdown.
//
// # Failed exports
//
// The error of a failed export goes to OpenTelemetry's error handler; see
// [otel.SetErrorHandler]. Metrics are cumulative, so the next export includes the values
// of a failed one.
//
// [otel.SetErrorHandler]: https://pkg.go.dev/go.opentelemetry.io/otel#SetErrorHandler
// [otlpmetricgrpc]: https://pkg.go.dev/go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc
// [otlpmetrichttp]: https://pkg.go.dev/go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp
package otlpmetric
