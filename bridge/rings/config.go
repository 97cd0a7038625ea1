// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package rings

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/identity"
	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Config configures a [Producer]. The zero value consumes the rings in
// $NIXL_TELEMETRY_DIR, or else in /tmp.
type Config struct {
	// Directories are those in which agents create their rings, or the stores of NIXL's
	// prometheus_mp exporter. They may be created later.
	Directories []string
	// Include are the patterns of files to read, relative to the directory. ** matches
	// any number of subdirectories. The default is *, which matches all files in the
	// directory itself. Files that aren't rings are ignored.
	Include []string
	// Exclude are the patterns of files to skip, in the format of Include. For stores, the
	// patterns apply to the names of their agents.
	Exclude []string
	// Mode is [ringbuf.Consume], the default, which removes events from the rings, or
	// [ringbuf.Observe], which leaves them for a consumer. Without a consumer, an
	// observed ring fills up, and its agent drops all further events.
	Mode ringbuf.Mode
	// RunInterval is the interval at which agents write events to their rings, at least
	// 1 ms. It is only an initial value: the Producer adapts to how often and how much
	// each agent writes. Rings are drained at least four times per interval. The default is
	// $NIXL_TELEMETRY_RUN_INTERVAL (in ms), or else 100 ms.
	RunInterval time.Duration
	// MaxRings is the maximum number of rings, and of stores. Further ones are not
	// read, and an error is logged. The default is 4096.
	MaxRings int
	// MaxEventNames is the maximum number of names of custom events per agent. Events
	// with further names count under otel.metric.overflow = true. The default is 64.
	MaxEventNames int
	// StaleAfter is how long after its last event the ring of an exited agent is closed.
	// The default is 5 minutes.
	StaleAfter time.Duration

	// DurationBounds (in seconds), SizeBounds (in bytes) and ThroughputBounds (in bytes
	// per second) are the upper bounds of the histograms. The default bounds are those
	// of package semconv. The bounds of stores are in the stores.
	DurationBounds, SizeBounds, ThroughputBounds []float64
	// ExponentialBuckets selects exponential histograms with at most so many buckets,
	// such as 160; at least 2.
	ExponentialBuckets int
	// Events adds the metric nixl.events, which counts all events by name.
	Events bool

	// Sinks also receive each event, before it is removed from its ring. Close them after
	// the Producer.
	Sinks []sink.Sink
	// Logger receives what happens to rings and directories, and problems with them. The
	// default is [slog.Default].
	Logger *slog.Logger
	// HostName is the host name from which service.instance.id is derived, see "Differences
	// from the Collector". The default is host.name in OTEL_RESOURCE_ATTRIBUTES, or else the
	// system's host name. In a container, set it to the node's name to get the same IDs as
	// a Collector on the node.
	HostName string
	// Now is the clock for the times of data points and of events from rings without
	// timestamps. It must advance at the rate of the system clock, because drains are
	// scheduled by it. The default is time.Now.
	Now func() time.Time
}

// withDefaults returns a valid configuration.
func (c Config) withDefaults() (Config, error) {
	env := process.Env(os.LookupEnv)
	var errs []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	require(c.Mode == ringbuf.Consume || c.Mode == ringbuf.Observe, "mode is %d: it must be ringbuf.Consume or ringbuf.Observe", c.Mode)
	require(c.MaxEventNames >= 0, "max event names is %d: it must be 1 or more", c.MaxEventNames)
	require(!slices.Contains(c.Sinks, nil), "a sink is nil")
	if len(c.Directories) == 0 {
		c.Directories = []string{env.Dir()}
	}
	for _, dir := range c.Directories {
		require(filepath.IsAbs(dir), "directory %q: it must be an absolute path", dir)
	}
	if c.RunInterval == 0 {
		var err error
		c.RunInterval, err = env.RunInterval()
		errs = append(errs, err)
	}
	if c.HostName == "" {
		var err error
		c.HostName, err = identity.HostName()
		errs = append(errs, err)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, errors.Join(errs...)
}

// host returns the configuration of package engine.
func (c *Config) host() engine.Config {
	histogram := func(bounds []float64) tally.HistogramConfig {
		if c.ExponentialBuckets != 0 {
			return tally.HistogramConfig{Kind: tally.Exponential, MaxSize: c.ExponentialBuckets}
		}
		return tally.HistogramConfig{Bounds: slices.Clone(bounds)}
	}
	return engine.Config{
		Directories: c.Directories, Include: c.Include, Exclude: c.Exclude, Observe: c.Mode == ringbuf.Observe, RunInterval: c.RunInterval,
		MaxRings: c.MaxRings, StaleAfter: c.StaleAfter, Stores: true, Now: c.Now,
		Tally: tally.Config{
			Duration: histogram(c.DurationBounds), Size: histogram(c.SizeBounds), Throughput: histogram(c.ThroughputBounds),
			MaxNames: c.MaxEventNames,
		},
	}
}
