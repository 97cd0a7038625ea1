// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

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
// exporters read all other variables themselves.
func newExporter(ctx context.Context) (sdkmetric.Exporter, error) {
	name, endpoint := variable("ENDPOINT")
	if name != "" && !strings.Contains(endpoint, "://") {
		// The exporters would take the host for a scheme and export to port 443.
		return nil, fmt.Errorf("%s=%s: has no scheme; write http://%[2]s, or https://%[2]s for TLS", name, endpoint)
	}
	// OTLP's default endpoint is without TLS, that of the exporters with TLS.
	insecure := name == ""
	name, protocol := variable("PROTOCOL")
	switch protocol {
	case "", "grpc":
		var opts []otlpmetricgrpc.Option
		if insecure {
			opts = append(opts, otlpmetricgrpc.WithInsecure())
		}
		return otlpmetricgrpc.New(ctx, opts...)
	case "http/protobuf":
		var opts []otlpmetrichttp.Option
		if insecure {
			opts = append(opts, otlpmetrichttp.WithInsecure())
		}
		return otlpmetrichttp.New(ctx, opts...)
	default:
		return nil, fmt.Errorf("%s=%s: must be grpc or http/protobuf", name, protocol)
	}
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
