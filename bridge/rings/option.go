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

// Option sets something of a [Producer].
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

// require notes what is wrong with an option. package host takes 0 for what
// isn't set.
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

// WithDirectories sets the directories that agents make their rings in. They
// need not exist yet. The default is $NIXL_TELEMETRY_DIR, or else /tmp.
func WithDirectories(dirs ...string) Option {
	return optionFunc(func(c config) config {
		c.host.Directories = dirs
		return c
	})
}

// WithInclude sets which files in the directories are looked at, by patterns
// relative to the directory, where ** stands for any folders. The default is
// *, every file; those that aren't rings are left alone.
func WithInclude(patterns ...string) Option {
	return optionFunc(func(c config) config {
		c.host.Include = patterns
		return c
	})
}

// WithExclude sets which of those files are not.
func WithExclude(patterns ...string) Option {
	return optionFunc(func(c config) config {
		c.host.Exclude = patterns
		return c
	})
}

// WithMode sets whether events are taken out of the rings, which is the
// default, or only looked at. An observer works beside a consumer. Without
// one, it sees no more than a ring holds at once.
func WithMode(mode ringbuf.Mode) Option {
	return optionFunc(func(c config) config {
		c.require(mode == ringbuf.Consume || mode == ringbuf.Observe, "mode is %d: it must be ringbuf.Consume or ringbuf.Observe", mode)
		c.host.Mode = mode
		return c
	})
}

// WithRunInterval sets the run interval of the agents, 1 ms or more: the time
// between two bursts of events. Rings are drained twice as often, and faster
// while one is found more than half full. The default is
// $NIXL_TELEMETRY_RUN_INTERVAL (in ms), or else 100 ms.
func WithRunInterval(interval time.Duration) Option {
	return optionFunc(func(c config) config {
		c.require(interval >= time.Millisecond, "run interval is %v: it must be 1ms or more", interval)
		c.host.RunInterval = interval
		return c
	})
}

// WithMaxRings sets how many rings are read at most, 4096 by default and at
// least 1. More are logged as an error, and not read.
func WithMaxRings(n int) Option {
	return optionFunc(func(c config) config {
		c.require(n > 0, "max rings is %d: it must be 1 or more", n)
		c.host.MaxRings = n
		return c
	})
}

// WithMaxEventNames sets how many event names of its own are told apart for an
// agent, 200 by default and at least 1. Events past it count under
// otel.metric.overflow = true.
func WithMaxEventNames(n int) Option {
	return optionFunc(func(c config) config {
		c.require(n > 0, "max event names is %d: it must be 1 or more", n)
		c.host.Tally.MaxNames = n
		return c
	})
}

// WithStaleAfter sets how long after its last event a ring is closed whose
// agent is gone, 5 minutes by default. It must be more than 0.
func WithStaleAfter(d time.Duration) Option {
	return optionFunc(func(c config) config {
		c.require(d > 0, "stale after is %v: it must be more than 0", d)
		c.host.StaleAfter = d
		return c
	})
}

// WithBounds sets the upper bounds of the buckets of durations, in seconds, and
// of sizes, in bytes. Those that are empty are the catalog's.
func WithBounds(durations, sizes []float64) Option {
	return optionFunc(func(c config) config {
		c.host.Tally.Duration = tally.HistogramConfig{Bounds: slices.Clone(durations)}
		c.host.Tally.Size = tally.HistogramConfig{Bounds: slices.Clone(sizes)}
		return c
	})
}

// WithExponentialHistograms has histograms be exponential, with so many
// buckets at most, at least 2; 160 where 0.
func WithExponentialHistograms(maxSize int) Option {
	return optionFunc(func(c config) config {
		h := tally.HistogramConfig{Kind: tally.Exponential, MaxSize: maxSize}
		c.host.Tally.Duration, c.host.Tally.Size = h, h
		return c
	})
}

// WithSinks has every event go to sinks too, as rings are drained. An event is
// taken out of its ring only after all sinks had it. The sinks are closed by
// whoever made them, after the Producer; none may be nil.
func WithSinks(sinks ...sink.Sink) Option {
	return optionFunc(func(c config) config {
		c.require(!slices.Contains(sinks, nil), "a sink is nil")
		c.sinks = append(slices.Clip(c.sinks), sinks...)
		return c
	})
}

// WithLogger sets where the Producer says what an operator may want to know:
// rings that come and go, and what is wrong with them. The default, and what
// nil stands for, is slog.Default.
func WithLogger(log *slog.Logger) Option {
	return optionFunc(func(c config) config {
		c.log = log
		return c
	})
}

// WithHostName sets the host name from which service.instance.id is derived. It
// matters only with several directories. The default is host.name in
// OTEL_RESOURCE_ATTRIBUTES, or else the system's. In a container, set it to the
// node's for the same IDs as those of a Collector on the node.
func WithHostName(name string) Option {
	return optionFunc(func(c config) config {
		c.hostname = func() (string, error) { return valid(name), nil }
		return c
	})
}

// WithClock sets the clock of points, of start times, and of events whose ring
// has no times. It must advance as fast as the system's, because rings are drained
// by it. The default, and what nil stands for, is the system's.
func WithClock(now func() time.Time) Option {
	return optionFunc(func(c config) config {
		c.host.Now = now
		return c
	})
}
