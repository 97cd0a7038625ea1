package otlpmetric

import (
	"context"
	"fmt"
	"os"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// newExporter makes the exporter for the protocol of the environment. The
// exporters read the other variables themselves, but not this one.
func newExporter(ctx context.Context) (sdkmetric.Exporter, error) {
	name, protocol := variable("PROTOCOL")
	switch protocol {
	case "", "grpc":
		var opts []otlpmetricgrpc.Option
		if defaultEndpoint() {
			opts = append(opts, otlpmetricgrpc.WithInsecure())
		}
		return otlpmetricgrpc.New(ctx, opts...)
	case "http/protobuf":
		var opts []otlpmetrichttp.Option
		if defaultEndpoint() {
			opts = append(opts, otlpmetrichttp.WithInsecure())
		}
		return otlpmetrichttp.New(ctx, opts...)
	default:
		return nil, fmt.Errorf("%s=%s: must be grpc or http/protobuf", name, protocol)
	}
}

// defaultEndpoint reports whether no endpoint is set. OTLP's default is on
// this host, without TLS; the exporters' default is with TLS.
func defaultEndpoint() bool {
	name, _ := variable("ENDPOINT")
	return name == ""
}

// variable returns the OTLP variable for a setting that applies to metrics, and
// its value. Both are empty if none is set; an empty value is like none.
func variable(setting string) (name, value string) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_METRICS_" + setting, "OTEL_EXPORTER_OTLP_" + setting} {
		if value := strings.TrimSpace(os.Getenv(name)); value != "" {
			return name, value
		}
	}
	return "", ""
}
