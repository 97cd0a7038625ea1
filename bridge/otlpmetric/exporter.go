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

// newExporter returns the exporter for OTEL_EXPORTER_OTLP_PROTOCOL. The exporters read
// all other variables themselves.
func newExporter(ctx context.Context) (sdkmetric.Exporter, error) {
	name, endpoint := variable("ENDPOINT")
	if name != "" && !strings.Contains(endpoint, "://") {
		// The exporters would parse the host as a scheme and export to port 443.
		return nil, fmt.Errorf("%s=%s: has no scheme; set it to http://%[2]s, or to https://%[2]s for TLS", name, endpoint)
	}
	// OTLP's default endpoint is without TLS, but that of the exporters is with TLS.
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

// variable returns the name and the value of the environment variable for an OTLP
// setting. Both are empty if no variable is set to a non-empty value.
func variable(setting string) (name, value string) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_METRICS_" + setting, "OTEL_EXPORTER_OTLP_" + setting} {
		if value := strings.TrimSpace(os.Getenv(name)); value != "" {
			return name, value
		}
	}
	return "", ""
}
