package agent

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/internal/nixlenv"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Option configures an [Agent].
type Option interface {
	apply(config) config
}

type optionFunc func(config) config

func (f optionFunc) apply(c config) config { return f(c) }

type config struct {
	provider   metric.MeterProvider
	enabled    bool
	clock      func() time.Time
	attributes []attribute.KeyValue

	nameInResource bool
	ring           *Ring
	sinks          []sink.Sink
	runInterval    time.Duration
	capacity       int // of staging
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
// the *Agent nil, which is equivalent to a disabled one.
func WithEnabled(enabled bool) Option {
	return optionFunc(func(c config) config {
		c.enabled = enabled
		return c
	})
}

// WithClock sets the source of the current time. The default is the system
// clock. The Agent reads it only if events carry their own time: with a sink,
// or with a ring of layout V1.
func WithClock(now func() time.Time) Option {
	return optionFunc(func(c config) config {
		c.clock = now
		return c
	})
}

// WithAttributes adds attributes to every point that the Agent reports.
func WithAttributes(attributes ...attribute.KeyValue) Option {
	return optionFunc(func(c config) config {
		c.attributes = append(slices.Clip(c.attributes), attributes...)
		return c
	})
}

// WithNameInResource leaves the attribute nixl.agent.name off the agent's
// points, for a MeterProvider whose resource has it because it speaks for this
// agent alone. By default it is on every point, so that agents of one provider
// are told apart.
func WithNameInResource() Option {
	return optionFunc(func(c config) config {
		c.nameInResource = true
		return c
	})
}

// Ring is the ring that an [Agent] writes. The zero value is what NIXL's own
// variables say, and its defaults where they say nothing.
type Ring struct {
	// Dir is the directory of the ring's file, whose name is the agent's. It
	// must exist. Where empty it is $NIXL_TELEMETRY_DIR, or else /tmp.
	Dir string
	// Layout is V4 where 0, what NIXL writes today. It can't carry what
	// [Agent.Event] records; V1 and V2Named can.
	Layout ringbuf.Layout
	// Capacity is the number of the ring's slots, a power of two from 2 to
	// [ringbuf.MaxCapacity], and the number of events that can be staged for it
	// within a run interval. Where 0 it is $NIXL_TELEMETRY_BUFFER_SIZE, or else
	// 4096.
	Capacity int
	// RunInterval is the time between two flushes, and at least 1 ms. Where 0
	// it is $NIXL_TELEMETRY_RUN_INTERVAL (in ms), or else 100 ms.
	RunInterval time.Duration
}

// WithRing has the agent write its events to a ring too, as NIXL's agents do,
// so that the Collector, or whatever else reads rings, reads it like every
// other agent. It needs no exporter: without a MeterProvider, the ring is all
// there is.
//
// Events are staged, and pushed to the ring in a burst on the run interval. A
// group of them that finds staging full is dropped, counts towards
// nixl.telemetry.events.dropped, and is told to the ring's reader where the
// layout is V4. The ring drops what finds it full: see [Agent.RingTelemetry].
func WithRing(r Ring) Option {
	return optionFunc(func(c config) config {
		c.ring = &r
		return c
	})
}

// WithSinks has the agent write its events to sinks too, on the run interval.
// The sinks are closed by whoever made them, after the agent; none may be nil,
// and none may close or flush the agent, which waits for them.
func WithSinks(sinks ...sink.Sink) Option {
	return optionFunc(func(c config) config {
		c.sinks = append(slices.Clip(c.sinks), sinks...)
		return c
	})
}

func newConfig(opts []Option) (config, error) {
	c := config{enabled: true}
	for _, o := range opts {
		c = o.apply(c)
	}
	if c.provider == nil {
		c.provider = otel.GetMeterProvider()
	}
	if slices.Contains(c.sinks, nil) {
		return c, errors.New("a sink is nil")
	}
	if c.ring == nil && len(c.sinks) == 0 {
		return c, nil
	}
	var ring Ring
	if c.ring != nil {
		ring = *c.ring
	}
	if err := ring.setDefaults(); err != nil {
		return c, err
	}
	if c.ring != nil {
		c.ring = &ring
	}
	c.runInterval, c.capacity = ring.RunInterval, ring.Capacity
	return c, nil
}

func (r *Ring) setDefaults() error {
	env := nixlenv.Env(os.LookupEnv)
	var errs []error
	if r.Dir == "" {
		r.Dir = env.Dir()
	}
	if r.Layout == 0 {
		r.Layout = ringbuf.V4
	}
	if r.Capacity == 0 {
		var err error
		r.Capacity, err = env.BufferSize()
		errs = append(errs, err)
	} else if !nixlenv.ValidBufferSize(r.Capacity) {
		errs = append(errs, fmt.Errorf("capacity is %d: it must be a power of two, from 2 to %d", r.Capacity, ringbuf.MaxCapacity))
	}
	if r.RunInterval == 0 {
		var err error
		r.RunInterval, err = env.RunInterval()
		errs = append(errs, err)
	} else if r.RunInterval < time.Millisecond {
		errs = append(errs, fmt.Errorf("run interval is %v: it must be 1ms or more", r.RunInterval))
	}
	return errors.Join(errs...)
}
