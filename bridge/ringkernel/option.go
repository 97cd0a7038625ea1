package ringkernel

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
)

// Option configures a [Runtime].
type Option interface {
	apply(config) config
}

type optionFunc func(config) config

func (f optionFunc) apply(c config) config { return f(c) }

type config struct {
	clock          func() time.Time // nil for the system's
	attributes     []attribute.KeyValue
	derived        bool
	errorType      func(error) string
	gpuUtilization func() (float64, bool)
}

func newConfig(opts []Option) (c config) {
	for _, o := range opts {
		c = o.apply(c)
	}
	return c
}

// WithClock sets the clock for the times of snapshots and messages. The default
// is the system's clock.
//
// Reading the system's clock takes longer than everything else that
// [Kernel.Received] does, so by default a kernel reads it for its first message
// in each 10 ms. The time of the last message is that of the newest one of
// these. A clock that is set here is read for every message:
// WithClock(time.Now) gives exact times for the price of a time.Now a message.
func WithClock(now func() time.Time) Option {
	return optionFunc(func(c config) config {
		c.clock = now
		return c
	})
}

// WithAttributes adds attributes to every data point of the Runtime. Runtimes
// that report to one reader must differ in them, or in the ids of their
// kernels.
func WithAttributes(attributes ...attribute.KeyValue) Option {
	return optionFunc(func(c config) config {
		c.attributes = append(slices.Clip(c.attributes), attributes...)
		return c
	})
}

// WithDerivedMetrics also reports the metrics that a backend can compute from
// the others: ringkernel.throughput and ringkernel.error_rate.
func WithDerivedMetrics() Option {
	return optionFunc(func(c config) config {
		c.derived = true
		return c
	})
}

// WithErrorType sets the function that names an error's type, the attribute
// error.type. It must return one of a few names, never the error's text. For
// an error for which it returns "", and without this option, the name is what
// the error's method ErrorType() string returns, or else its Go type.
func WithErrorType(name func(error) string) Option {
	return optionFunc(func(c config) config {
		c.errorType = name
		return c
	})
}

// WithGPUUtilization sets where a [Summary] gets the utilization of the GPU
// from, 0 to 1; ok is false without a GPU. [Runtime.Summary] calls the
// function, from any goroutine.
func WithGPUUtilization(utilization func() (ratio float64, ok bool)) Option {
	return optionFunc(func(c config) config {
		c.gpuUtilization = utilization
		return c
	})
}
