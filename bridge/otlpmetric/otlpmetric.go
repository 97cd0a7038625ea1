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

// New returns a Provider with the exporter and the interval selected by the environment.
// Its resource describes the process, the host and the SDK, and has the attributes of
// the environment and the options.
//
// New doesn't connect to the backend. If the backend can't be reached, exports fail.
func New(ctx context.Context, opts ...Option) (*Provider, error) {
	c := newConfig(opts)
	res, err := newResource(ctx, &c)
	if err != nil {
		return nil, fmt.Errorf("set up OTLP metrics: detect resource: %w", err)
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

// Shutdown collects and exports once more and closes the connection. It waits for the
// export until ctx is done, so pass it a new context with a deadline.
//
// The last export includes everything recorded before Shutdown, whether sessions and
// producers are closed before or after it. Further calls return the same result.
func (p *Provider) Shutdown(ctx context.Context) error {
	p.stopping.Do(func() {
		err := p.MeterProvider.Shutdown(ctx)
		if err != nil && errors.Is(ctx.Err(), context.Canceled) {
			err = fmt.Errorf("the context was canceled; pass Shutdown a new context with a deadline of some seconds: %w", err)
		}
		if err != nil {
			p.shutdownErr = fmt.Errorf("shut down OTLP metrics: the last export may have failed: %w", err)
		}
	})
	return p.shutdownErr
}

// handled passes a producer's error to OpenTelemetry's error handler. If a producer
// returned an error to the SDK's reader, the reader would export nothing, not even the
// metrics of the SDK's instruments.
type handled struct{ sdkmetric.Producer }

func (h handled) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	metrics, err := h.Producer.Produce(ctx)
	if err != nil {
		otel.Handle(fmt.Errorf("collect metrics of %T: %w", h.Producer, err))
	}
	return metrics, nil
}

// newResource returns the program's resource. Later detectors take precedence, so the
// environment, which the operator controls, comes last. The command line and the owner
// of the process aren't detected, because they may be confidential.
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
		return res, nil // for example, the host has no name; the rest is valid
	}
	return res, err
}
