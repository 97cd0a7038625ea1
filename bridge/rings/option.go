// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package rings

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/internal/host"
	"github.com/nixl-otel/nixl-otel/internal/identity"
	"github.com/nixl-otel/nixl-otel/internal/nixlenv"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Option configures a [Producer].
type Option interface {
	apply(config) config
}

type optionFunc func(config) config

func (f optionFunc) apply(c config) config { return f(c) }

type config struct {
	host     host.Config
	hostname func() (string, error)
	log      *slog.Logger
	sinks    []sink.Sink
	errs     []error // of options
}

// require adds an error unless ok is true. Package host can't validate these options,
// because it treats 0 as not set.
func (c *config) require(ok bool, format string, args ...any) {
	if !ok {
		c.errs = append(c.errs, fmt.Errorf(format, args...))
	}
}

func newConfig(opts []Option) (config, error) {
	c := config{hostname: identity.HostName}
	for _, o := range opts {
		c = o.apply(c)
	}
	env := nixlenv.Env(os.LookupEnv)
	if len(c.host.Directories) == 0 {
		c.host.Directories = []string{env.Dir()}
	}
	errs := c.errs
	if c.host.RunInterval == 0 {
		var err error
		c.host.RunInterval, err = env.RunInterval()
		errs = append(errs, err)
	}
	if c.host.Now == nil {
		c.host.Now = time.Now
	}
	if c.log == nil {
		c.log = slog.Default()
	}
	return c, errors.Join(errs...)
}

// WithDirectories sets the directories in which agents create their rings. The
// directories may be created later. The default is $NIXL_TELEMETRY_DIR, or else /tmp.
func WithDirectories(dirs ...string) Option {
	return optionFunc(func(c config) config {
		c.host.Directories = dirs
		return c
	})
}

// WithInclude sets the patterns of files to read, relative to the directory. **
// matches any number of subdirectories. The default is *, which matches all files in
// the directory itself. Files that aren't rings are ignored.
func WithInclude(patterns ...string) Option {
	return optionFunc(func(c config) config {
		c.host.Include = patterns
		return c
	})
}

// WithExclude sets the patterns of files to skip, in the format of [WithInclude].
func WithExclude(patterns ...string) Option {
	return optionFunc(func(c config) config {
		c.host.Exclude = patterns
		return c
	})
}

// WithMode sets the mode. [ringbuf.Consume], the default, removes events from the
// rings. [ringbuf.Observe] leaves them for a consumer. Without a consumer, an observed
// ring fills up, and its agent drops all further events.
func WithMode(mode ringbuf.Mode) Option {
	return optionFunc(func(c config) config {
		c.require(mode == ringbuf.Consume || mode == ringbuf.Observe, "mode is %d: it must be ringbuf.Consume or ringbuf.Observe", mode)
		c.host.Mode = mode
		return c
	})
}

// WithRunInterval sets the interval at which agents write events to their rings, at
// least 1 ms. It is only an initial value: the Producer adapts to how often and how
// much each agent writes. Rings are drained at least twice per interval. The default is
// $NIXL_TELEMETRY_RUN_INTERVAL (in ms), or else 100 ms.
func WithRunInterval(interval time.Duration) Option {
	return optionFunc(func(c config) config {
		c.require(interval >= time.Millisecond, "run interval is %v: it must be 1ms or more", interval)
		c.host.RunInterval = interval
		return c
	})
}

// WithMaxRings sets the maximum number of rings, at least 1. Further rings are not
// read, and an error is logged. The default is 4096.
func WithMaxRings(n int) Option {
	return optionFunc(func(c config) config {
		c.require(n > 0, "max rings is %d: it must be 1 or more", n)
		c.host.MaxRings = n
		return c
	})
}

// WithMaxEventNames sets the maximum number of names of custom events per agent, at
// least 1. Events with further names count under otel.metric.overflow = true. The
// default is 200.
func WithMaxEventNames(n int) Option {
	return optionFunc(func(c config) config {
		c.require(n > 0, "max event names is %d: it must be 1 or more", n)
		c.host.Tally.MaxNames = n
		return c
	})
}

// WithStaleAfter sets how long after its last event the ring of an exited agent is
// closed. It must be more than 0. The default is 5 minutes.
func WithStaleAfter(d time.Duration) Option {
	return optionFunc(func(c config) config {
		c.require(d > 0, "stale after is %v: it must be more than 0", d)
		c.host.StaleAfter = d
		return c
	})
}

// WithHistogramBounds sets the upper bounds of the histograms of durations (in
// seconds), sizes (in bytes) and throughput (in bytes per second). An empty list
// selects the default bounds of package semconv.
func WithHistogramBounds(durations, sizes, throughputs []float64) Option {
	return optionFunc(func(c config) config {
		c.host.Tally.Duration = tally.HistogramConfig{Bounds: slices.Clone(durations)}
		c.host.Tally.Size = tally.HistogramConfig{Bounds: slices.Clone(sizes)}
		c.host.Tally.Throughput = tally.HistogramConfig{Bounds: slices.Clone(throughputs)}
		return c
	})
}

// WithExponentialHistograms selects exponential histograms with at most maxSize
// buckets. maxSize must be 2 or more; 0 means 160.
func WithExponentialHistograms(maxSize int) Option {
	return optionFunc(func(c config) config {
		h := tally.HistogramConfig{Kind: tally.Exponential, MaxSize: maxSize}
		c.host.Tally.Duration, c.host.Tally.Size, c.host.Tally.Throughput = h, h, h
		return c
	})
}

// WithSizeClasses adds the attribute nixl.transfer.size_class, the size class of each
// transfer, to the duration histograms. Transfers whose events were only read in part
// have no class.
func WithSizeClasses() Option {
	return optionFunc(func(c config) config {
		c.host.Tally.SizeClasses = true
		return c
	})
}

// WithSinks also passes each event to sinks before it is removed from its ring. Sinks
// must not be nil. Close them after the Producer.
func WithSinks(sinks ...sink.Sink) Option {
	return optionFunc(func(c config) config {
		c.require(!slices.Contains(sinks, nil), "a sink is nil")
		c.sinks = append(slices.Clip(c.sinks), sinks...)
		return c
	})
}

// WithLogger sets the logger. The Producer logs which rings it opens and closes, and
// problems with rings and directories. The default is [slog.Default].
func WithLogger(log *slog.Logger) Option {
	return optionFunc(func(c config) config {
		c.log = log
		return c
	})
}

// WithHostName sets the host name from which service.instance.id is derived. It is only
// used with several directories. The default is host.name in
// OTEL_RESOURCE_ATTRIBUTES, or else the system's host name. In a container, set it to
// the node's name to get the same IDs as a Collector on the node.
func WithHostName(name string) Option {
	return optionFunc(func(c config) config {
		c.hostname = func() (string, error) { return valid(name), nil }
		return c
	})
}

// WithClock sets the clock for the times of data points and of events from rings
// without timestamps. It must advance at the rate of the system clock, because drains
// are scheduled by it. The default is time.Now.
func WithClock(now func() time.Time) Option {
	return optionFunc(func(c config) config {
		c.host.Now = now
		return c
	})
}
