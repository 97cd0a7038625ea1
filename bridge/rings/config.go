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
	// directory itself. Files that aren't rings are ignored. For stores, the patterns apply
	// to the names of their agents.
	Include []string
	// Mode is [ringbuf.Consume], the default, which removes events from the rings, or
	// [ringbuf.Observe], which leaves them for a consumer. Without a consumer, an
	// observed ring fills up, and its agent drops all further events.
	Mode ringbuf.Mode
	// RunInterval is the interval at which agents write events to their rings, at least
	// 1 ms. It is only an initial value: the Producer adapts to how often and how much
	// each agent writes. Rings are drained at least four times per interval. The default is
	// $NIXL_TELEMETRY_RUN_INTERVAL (in ms), or else 100 ms.
	RunInterval time.Duration

	// DurationBounds (in seconds), SizeBounds (in bytes) and ThroughputBounds (in bytes
	// per second) are the upper bounds of the histograms. The default bounds are those
	// of package semconv. The bounds of stores are in the stores.
	DurationBounds, SizeBounds, ThroughputBounds []float64
	// Events adds the metric nixl.events, which counts all events by name.
	Events bool

	// Sinks also receive each event, before it is removed from its ring. Close them after
	// the Producer.
	Sinks []sink.Sink
	// Logger receives what happens to rings and directories, and problems with them. The
	// default is [slog.Default].
	Logger *slog.Logger

	clock func() time.Time // for tests; time.Now by default
}

// engine returns the configuration of package engine, which validates most of it.
func (c *Config) engine() (engine.Config, error) {
	env := process.Env(os.LookupEnv)
	bounds := func(bounds []float64) tally.HistogramConfig {
		return tally.HistogramConfig{Bounds: slices.Clone(bounds)}
	}
	cfg := engine.Config{
		Directories: c.Directories, Include: c.Include, Observe: c.Mode == ringbuf.Observe, RunInterval: c.RunInterval,
		Stores: true, Now: c.clock,
		Tally: tally.Config{Duration: bounds(c.DurationBounds), Size: bounds(c.SizeBounds), Throughput: bounds(c.ThroughputBounds)},
	}
	var errs []error
	if c.Mode != ringbuf.Consume && c.Mode != ringbuf.Observe {
		errs = append(errs, fmt.Errorf("mode is %d: it must be ringbuf.Consume or ringbuf.Observe", c.Mode))
	}
	if slices.Contains(c.Sinks, nil) {
		errs = append(errs, errors.New("a sink is nil"))
	}
	if len(cfg.Directories) == 0 {
		cfg.Directories = []string{env.Dir()}
	}
	for _, dir := range cfg.Directories {
		if !filepath.IsAbs(dir) {
			errs = append(errs, fmt.Errorf("directory %q: it must be an absolute path", dir))
		}
	}
	if cfg.RunInterval == 0 {
		var err error
		cfg.RunInterval, err = env.RunInterval()
		errs = append(errs, err)
	}
	return cfg, errors.Join(errs...)
}
