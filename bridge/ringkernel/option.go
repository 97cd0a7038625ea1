package ringkernel

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Option configures a [Runtime].
type Option interface {
	apply(config) config
}

type optionFunc func(config) config

func (f optionFunc) apply(c config) config { return f(c) }

type config struct {
	provider   metric.MeterProvider
	enabled    bool
	clock      func() time.Time // nil for the system's
	attributes []attribute.KeyValue

	derived        bool
	latencies      *LatencyProducer
	errorType      func(error) string
	gpuUtilization func() (float64, bool)
}

func newConfig(opts []Option) config {
	c := config{enabled: true}
	for _, o := range opts {
		c = o.apply(c)
	}
	if c.provider == nil {
		c.provider = otel.GetMeterProvider()
	}
	return c
}

// WithMeterProvider sets the provider of the instruments. The default is the
// global one, otel.GetMeterProvider.
func WithMeterProvider(provider metric.MeterProvider) Option {
	return optionFunc(func(c config) config {
		c.provider = provider
		return c
	})
}

// WithEnabled sets whether telemetry is collected. The default is true. A
// program in which telemetry is opt-in passes its own setting here, or leaves
// the *Runtime nil, which is equivalent to a disabled one.
func WithEnabled(enabled bool) Option {
	return optionFunc(func(c config) config {
		c.enabled = enabled
		return c
	})
}

// WithClock sets what tells the time, for the times of snapshots and messages.
// The default is the system's clock.
//
// Reading the system's clock takes longer than everything else that
// [Kernel.Received] does, so by default it is read for a kernel's first
// message in each 10 ms, and the time of the last message is that of the
// newest one of these. A clock that is set here is read for every message.
// WithClock(time.Now), then, buys exact times for about 50 ns a message.
func WithClock(now func() time.Time) Option {
	return optionFunc(func(c config) config {
		c.clock = now
		return c
	})
}

// WithAttributes adds attributes to every point that the Runtime reports, for
// example to distinguish the Runtimes of one process.
func WithAttributes(attributes ...attribute.KeyValue) Option {
	return optionFunc(func(c config) config {
		c.attributes = append(slices.Clip(c.attributes), attributes...)
		return c
	})
}

// WithDerivedMetrics also reports the metrics that a backend can compute from
// the others: ringkernel.throughput and ringkernel.error_rate. The default is
// false.
func WithDerivedMetrics(derived bool) Option {
	return optionFunc(func(c config) config {
		c.derived = derived
		return c
	})
}

// WithLatencyProducer has p report the latencies, in place of a histogram of
// the SDK: see [LatencyProducer] for when to.
func WithLatencyProducer(p *LatencyProducer) Option {
	return optionFunc(func(c config) config {
		c.latencies = p
		return c
	})
}

// WithErrorType sets what names an error's type, the attribute error.type.
// The name must be one of a few: it must not hold the error's text. For an
// error that it returns "" for, and without this option, the name is what the
// error's method ErrorType() string returns, or else its Go type.
func WithErrorType(name func(error) string) Option {
	return optionFunc(func(c config) config {
		c.errorType = name
		return c
	})
}

// WithGPUUtilization sets where a [Summary] has the utilization of the GPU
// from, 0 to 1; ok is false when there is no GPU. The function is called by
// [Runtime.Summary], from any goroutine.
func WithGPUUtilization(utilization func() (ratio float64, ok bool)) Option {
	return optionFunc(func(c config) config {
		c.gpuUtilization = utilization
		return c
	})
}
