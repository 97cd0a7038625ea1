// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package otlpmetric

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// Option configures a [Provider].
type Option interface {
	apply(config) config
}

type optionFunc func(config) config

func (f optionFunc) apply(c config) config { return f(c) }

type config struct {
	service    string
	attributes []attribute.KeyValue
	exporter   sdkmetric.Exporter
	reader     []sdkmetric.PeriodicReaderOption
	provider   []sdkmetric.Option
}

func newConfig(opts []Option) config {
	var c config
	for _, o := range opts {
		c = o.apply(c)
	}
	return c
}

// WithServiceName sets service.name, unless the environment sets it. The default is
// unknown_service: followed by the name of the executable.
func WithServiceName(name string) Option {
	return optionFunc(func(c config) config {
		c.service = name
		return c
	})
}

// WithAttributes adds attributes to the resource. Attributes in
// OTEL_RESOURCE_ATTRIBUTES take precedence.
func WithAttributes(attributes ...attribute.KeyValue) Option {
	return optionFunc(func(c config) config {
		c.attributes = append(slices.Clip(c.attributes), attributes...)
		return c
	})
}

// WithProducers adds metric producers, such as a rings.Producer, whose metrics are
// included in every export. A producer's error goes to OpenTelemetry's error handler and
// doesn't prevent the export.
func WithProducers(producers ...sdkmetric.Producer) Option {
	return optionFunc(func(c config) config {
		for _, p := range producers {
			c.reader = append(slices.Clip(c.reader), sdkmetric.WithProducer(handled{p}))
		}
		return c
	})
}

// WithInterval sets the time between two exports. It takes precedence over
// OTEL_METRIC_EXPORT_INTERVAL.
func WithInterval(d time.Duration) Option {
	return optionFunc(func(c config) config {
		c.reader = append(slices.Clip(c.reader), sdkmetric.WithInterval(d))
		return c
	})
}

// WithExporter sets the exporter, instead of the one selected by the environment.
func WithExporter(e sdkmetric.Exporter) Option {
	return optionFunc(func(c config) config {
		c.exporter = e
		return c
	})
}

// WithProviderOptions adds options for the SDK's MeterProvider, such as views, another
// reader, or a cardinality limit.
func WithProviderOptions(opts ...sdkmetric.Option) Option {
	return optionFunc(func(c config) config {
		c.provider = append(slices.Clip(c.provider), opts...)
		return c
	})
}
