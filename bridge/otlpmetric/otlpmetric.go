package otlpmetric

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// New makes a MeterProvider that exports over OTLP gRPC at the interval that
// the environment says. Its resource is of this process, host and SDK, with
// what the environment and the options add.
//
// An error names the variable that has a value which can't be: an endpoint
// that is no URL, a certificate that can't be read. ForceFlush exports at once;
// Shutdown exports what came last and gives up the connection.
func New(ctx context.Context, opts ...Option) (*sdkmetric.MeterProvider, error) {
	c := newConfig(opts)
	if err := checkEnv(); err != nil {
		return nil, fmt.Errorf("set up OTLP metrics: %w", err)
	}
	res, err := newResource(ctx, &c)
	if err != nil {
		return nil, fmt.Errorf("set up OTLP metrics: detect the resource: %w", err)
	}
	exporting := c.exporter
	if nowhere() {
		// OTLP's default; the exporter's own asks for TLS there.
		exporting = append([]otlpmetricgrpc.Option{otlpmetricgrpc.WithEndpointURL(defaultEndpoint)}, exporting...)
	}
	exporter, err := otlpmetricgrpc.New(ctx, exporting...)
	if err != nil {
		return nil, fmt.Errorf("set up OTLP metrics: %w", err)
	}
	return sdkmetric.NewMeterProvider(append([]sdkmetric.Option{
		sdkmetric.WithResource(res),
		sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter, c.reader...)),
	}, c.provider...)...), nil
}

const defaultEndpoint = "http://localhost:4317"

// newResource says what this program is. What comes later wins: the
// environment is the operator's last word.
//
// A command line may have secrets in it, and who owns a process is nobody's
// business: neither is detected.
func newResource(ctx context.Context, c *config) (*resource.Resource, error) {
	given := c.attributes
	if c.service != "" {
		given = append([]attribute.KeyValue{attribute.String(semconv.ServiceName, c.service)}, given...)
	}
	res, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithHost(),
		resource.WithProcessPID(),
		resource.WithProcessExecutableName(),
		resource.WithProcessRuntimeName(),
		resource.WithProcessRuntimeVersion(),
		resource.WithService(),
		resource.WithAttributes(given...),
		resource.WithFromEnv(),
	)
	if errors.Is(err, resource.ErrPartialResource) || errors.Is(err, resource.ErrSchemaURLConflict) {
		return res, nil // a host without a name, say: the rest is as good
	}
	return res, err
}
