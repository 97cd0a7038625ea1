// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package otlpmetric

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// Provider is a MeterProvider that exports over OTLP.
type Provider struct {
	*sdkmetric.MeterProvider

	stopping    sync.Once
	shutdownErr error
}

// New makes a Provider with the exporter and the interval that the environment
// selects. Its resource describes this process, host and SDK, and has the
// attributes of the environment and the options.
//
// It doesn't connect: a backend that can't be reached is an error of the
// exports, not of New.
func New(ctx context.Context, opts ...Option) (*Provider, error) {
	c := newConfig(opts)
	res, err := newResource(ctx, &c)
	if err != nil {
		return nil, fmt.Errorf("set up OTLP metrics: detect the resource: %w", err)
	}
	if c.exporter == nil {
		if c.exporter, err = newExporter(ctx); err != nil {
			return nil, fmt.Errorf("set up OTLP metrics: %w", err)
		}
	}
	return &Provider{MeterProvider: sdkmetric.NewMeterProvider(append([]sdkmetric.Option{
		sdkmetric.WithResource(res),
		sdkmetric.WithReader(sdkmetric.NewPeriodicReader(c.exporter, c.reader...)),
	}, c.provider...)...)}, nil
}

// Shutdown collects and exports once more and closes the connection. It waits
// for the export as long as ctx allows, so give it a context with a deadline
// that isn't done.
//
// The last export includes everything that was recorded before Shutdown,
// whether sessions and producers are closed before or after it. Later calls
// return the same.
func (p *Provider) Shutdown(ctx context.Context) error {
	p.stopping.Do(func() {
		err := p.MeterProvider.Shutdown(ctx)
		if err != nil && errors.Is(ctx.Err(), context.Canceled) {
			err = fmt.Errorf("the context was canceled; give Shutdown a context of its own, with a deadline of some seconds: %w", err)
		}
		if err != nil {
			p.shutdownErr = fmt.Errorf("shut down OTLP metrics: the last export may be lost: %w", err)
		}
	})
	return p.shutdownErr
}

// handled passes a producer's error to OpenTelemetry's error handler: if a
// producer returns one, the SDK's reader exports nothing at all, not even the
// metrics of the SDK's own instruments.
type handled struct{ sdkmetric.Producer }

func (h handled) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	metrics, err := h.Producer.Produce(ctx)
	if err != nil {
		otel.Handle(fmt.Errorf("collect metrics of %T: %w", h.Producer, err))
	}
	return metrics, nil
}

// newResource describes this program. Later detectors take precedence, so the
// environment, which the operator controls, comes last.
//
// The command line may contain secrets, and the owner of the process is
// nobody's business, so neither is detected.
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
		return res, nil // for example a host without a name: the rest is valid
	}
	return res, err
}
