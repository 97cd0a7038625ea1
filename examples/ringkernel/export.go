package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// shutdownTime bounds the last export, so that a backend that is gone doesn't
// keep the program.
const shutdownTime = 5 * time.Second

// newProvider is a provider that ships over OTLP gRPC if the environment says
// where to, and one without a reader otherwise. shutdown ships what came last.
func newProvider(
	ctx context.Context, latencies *ringkernel.LatencyProducer,
) (provider *sdkmetric.MeterProvider, shutdown func() error, err error) {
	var opts []sdkmetric.Option
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") != "" {
		opts, err = exporting(ctx, latencies)
		if err != nil {
			return nil, nil, err
		}
	}
	provider = sdkmetric.NewMeterProvider(opts...)
	return provider, func() error {
		// Not ctx: that is done when the program is interrupted.
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			return fmt.Errorf("ship the last metrics: %w", err)
		}
		return nil
	}, nil
}

func exporting(ctx context.Context, latencies *ringkernel.LatencyProducer) ([]sdkmetric.Option, error) {
	exporter, err := otlpmetricgrpc.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("make the OTLP exporter: %w", err)
	}
	res, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithHost(),
		resource.WithAttributes(attribute.String(semconv.ServiceName, "ringkernel-example")),
		resource.WithFromEnv(), // last: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win
	)
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, errors.Join(fmt.Errorf("detect the resource: %w", err), exporter.Shutdown(ctx))
	}
	var reading []sdkmetric.PeriodicReaderOption
	if latencies != nil {
		reading = append(reading, sdkmetric.WithProducer(latencies))
	}
	return []sdkmetric.Option{
		sdkmetric.WithResource(res),
		sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter, reading...)),
	}, nil
}
