// Package otlpmetric sets up a MeterProvider that ships over OTLP gRPC, in one
// call:
//
//	rt := ringkernel.NewRuntime()
//	provider, err := otlpmetric.New(ctx, otlpmetric.WithServiceName("kv-cache"), otlpmetric.WithProducers(rt.NewProducer()))
//	if err != nil {
//		return err
//	}
//	defer provider.Shutdown(ctx) // collects and exports once more
//
// It is for programs that have no pipeline of their own yet. One that has a
// MeterProvider passes that one instead, and does not need this package.
//
// # The environment
//
// OpenTelemetry's variables say where to ship, and what the program is:
//
//	OTEL_EXPORTER_OTLP_ENDPOINT            http://host:4317, or https:// for TLS; http://localhost:4317 if unset
//	OTEL_EXPORTER_OTLP_INSECURE            true for no TLS
//	OTEL_EXPORTER_OTLP_CERTIFICATE         file of the CA certificates to trust, PEM
//	OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE  file of the client's certificate, PEM
//	OTEL_EXPORTER_OTLP_CLIENT_KEY          file of its key, PEM
//	OTEL_EXPORTER_OTLP_HEADERS             key=value,key=value
//	OTEL_EXPORTER_OTLP_COMPRESSION         gzip or none
//	OTEL_EXPORTER_OTLP_TIMEOUT             of an export, in ms; 10000 if unset
//	OTEL_EXPORTER_OTLP_PROTOCOL            grpc
//	OTEL_METRIC_EXPORT_INTERVAL            between two exports, in ms; 60000 if unset
//	OTEL_METRIC_EXPORT_TIMEOUT             of a collection and its export, in ms; 30000 if unset
//	OTEL_SERVICE_NAME                      service.name
//	OTEL_RESOURCE_ATTRIBUTES               key=value,key=value
//
// Each OTEL_EXPORTER_OTLP_X also exists as OTEL_EXPORTER_OTLP_METRICS_X, which
// comes first; so do OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE and
// OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION.
//
// The SDK takes what it can't make sense of for unset, and logs at most a line
// about it; so metrics would go to the wrong place, or nowhere. [New] refuses
// such a value, and says which variable it is of.
//
// # When the backend is away
//
// The exporter connects when it first exports, so that a backend that isn't
// there yet is no error of New. What can't be exported goes to OpenTelemetry's
// error handler (otel.SetErrorHandler), which logs it; metrics are cumulative,
// so that the next export has it all. Shutdown waits for the last export as
// long as its context allows: give it one with a deadline.
package otlpmetric
