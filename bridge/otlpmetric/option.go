package otlpmetric

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// Option sets something of the MeterProvider.
type Option interface {
	apply(config) config
}

type optionFunc func(config) config

func (f optionFunc) apply(c config) config { return f(c) }

type config struct {
	service    string
	attributes []attribute.KeyValue
	exporter   []otlpmetricgrpc.Option
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

// WithServiceName sets service.name for where the environment doesn't. The
// default is unknown_service: and the name of the program's file.
func WithServiceName(name string) Option {
	return optionFunc(func(c config) config {
		c.service = name
		return c
	})
}

// WithAttributes adds attributes to the resource. Those of the environment come
// first.
func WithAttributes(attributes ...attribute.KeyValue) Option {
	return optionFunc(func(c config) config {
		c.attributes = append(slices.Clip(c.attributes), attributes...)
		return c
	})
}

// WithProducers adds producers, such as that of a ringkernel.Runtime and
// rings.Producer.
func WithProducers(producers ...sdkmetric.Producer) Option {
	return optionFunc(func(c config) config {
		for _, p := range producers {
			c.reader = append(slices.Clip(c.reader), sdkmetric.WithProducer(p))
		}
		return c
	})
}

// WithReaderOptions sets something of the SDK's periodic reader, such as its
// interval. It comes before the environment.
func WithReaderOptions(opts ...sdkmetric.PeriodicReaderOption) Option {
	return optionFunc(func(c config) config {
		c.reader = append(slices.Clip(c.reader), opts...)
		return c
	})
}

// WithExporterOptions sets something of the exporter. It comes before the
// environment.
func WithExporterOptions(opts ...otlpmetricgrpc.Option) Option {
	return optionFunc(func(c config) config {
		c.exporter = append(slices.Clip(c.exporter), opts...)
		return c
	})
}

// WithProviderOptions sets something of the MeterProvider: views, another
// reader, a limit on cardinality.
func WithProviderOptions(opts ...sdkmetric.Option) Option {
	return optionFunc(func(c config) config {
		c.provider = append(slices.Clip(c.provider), opts...)
		return c
	})
}
