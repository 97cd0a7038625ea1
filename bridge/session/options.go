package session

import (
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

// DefaultDir is the directory of sessions where none is given.
const DefaultDir = "telemetry"

// DefaultOperationLimit is how many operations a session tells apart.
const DefaultOperationLimit = 200

// Option configures a [Session].
type Option interface {
	apply(config) config
}

// ReadOption configures how a session is read: [Analyze] and [Recover].
type ReadOption interface {
	applyRead(readConfig) readConfig
}

// CommonOption configures a [Session] and how one is read, alike.
type CommonOption interface {
	Option
	ReadOption
}

type optionFunc func(config) config

func (f optionFunc) apply(c config) config { return f(c) }

type commonOption func(readConfig) readConfig

func (f commonOption) apply(c config) config {
	c.readConfig = f(c.readConfig)
	return c
}

func (f commonOption) applyRead(c readConfig) readConfig { return f(c) }

// readConfig is what the summary of a session depends on.
type readConfig struct {
	operationLimit int
}

func newReadConfig(opts []ReadOption) readConfig {
	c := readConfig{operationLimit: DefaultOperationLimit}
	for _, o := range opts {
		c = o.applyRead(c)
	}
	return c
}

type config struct {
	readConfig

	name            string
	provider        metric.MeterProvider
	clock           func() time.Time
	layerOnDuration bool
	create          func(path string) (file, error)
}

func newConfig(opts []Option) config {
	c := config{
		readConfig: newReadConfig(nil),
		clock:      time.Now,
		create:     createFile,
	}
	for _, o := range opts {
		c = o.apply(c)
	}
	if c.provider == nil {
		c.provider = otel.GetMeterProvider()
	}
	return c
}

// WithName names the session and thereby its files. The name can't have a path
// separator in it. The default is the local time, as in
// session_2025-11-17_00-04-29.
func WithName(name string) Option {
	return optionFunc(func(c config) config {
		c.name = name
		return c
	})
}

// WithMeterProvider sets where the metrics go. The default is the global
// MeterProvider.
func WithMeterProvider(p metric.MeterProvider) Option {
	return optionFunc(func(c config) config {
		c.provider = p
		return c
	})
}

// WithClock sets what tells the time. The default is [time.Now].
func WithClock(now func() time.Time) Option {
	return optionFunc(func(c config) config {
		if now != nil {
			c.clock = now
		}
		return c
	})
}

// WithOperationLimit sets how many operations the session tells apart, in the
// summary and in metrics, [DefaultOperationLimit] by default. Raise it for a
// model that has more; the limit is there for a pipeline that puts a number
// into the names by mistake. A limit below 1 is the default.
//
// The files of a session don't say what its limit was: give [Analyze] and
// [Recover] the same one, for the same summary.
func WithOperationLimit(n int) CommonOption {
	return commonOption(func(c readConfig) readConfig {
		if n < 1 {
			n = DefaultOperationLimit
		}
		c.operationLimit = n
		return c
	})
}

// WithLayerOnDuration puts the attribute splitinfer.layer on the histogram of
// durations. That multiplies its series by the number of layers, so it is off
// by default.
func WithLayerOnDuration() Option {
	return optionFunc(func(c config) config {
		c.layerOnDuration = true
		return c
	})
}
