// Package host reports the NIXL agents of a host: it discovers their rings,
// drains them, and stores the totals. The receiver, bridge/rings and nixlring
// use it.
package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Defaults of a [Config]. The run interval is NIXL's own.
const (
	DefaultRunInterval = 100 * time.Millisecond
	DefaultMaxRings    = 4096
	DefaultStaleAfter  = 5 * time.Minute
)

// MinStaleAfter is the shortest StaleAfter that makes a difference.
const MinStaleAfter = discover.ProbeInterval

// Config says what to watch, and how. Directories is the one field that must
// be set.
type Config struct {
	Directories []string // one ring per agent is in them, named after the agent
	Include     []string // doublestar patterns, relative to the directory; * if empty
	Exclude     []string
	Mode        ringbuf.Mode
	RunInterval time.Duration // of the agents; the starting value for what is learned
	MaxRings    int
	AllowedUIDs []uint32 // owners whose rings are opened; any if empty
	StaleAfter  time.Duration
	Tally       tally.Config

	// Report receives what an operator may want to know. It must not block.
	Report func(notice.Notice)
	// Tap is shown every event before it is committed; nil for none. The ring
	// waits for it. It is called by one goroutine per file system.
	Tap func(drain.Agent, ringbuf.Batch)
	// Now is the clock; time.Now if nil.
	Now func() time.Time

	// Telemetry receives the figures about the work itself; its fields may be nil.
	Telemetry Telemetry
}

// Telemetry receives figures about draining and saving. Its functions must not
// block.
type Telemetry struct {
	Lag    func(time.Duration)            // how late a round of drains began
	Events func(uint64)                   // how many events a round counted
	Saved  func(d time.Duration, ok bool) // how long a save took, and whether it worked
}

// Host watches directories of rings. Its methods are safe for concurrent use.
type Host struct {
	cfg         Config
	shape       *tally.Shape
	reporter    *notice.Reporter
	saver       *checkpoint.Saver // nil without a store
	group       *drain.Group      // nil before Start
	directories []*discover.Directory
	open        atomic.Int64 // rings, against MaxRings
}

// New checks the configuration. Nothing is opened before [Host.Start].
func New(cfg Config) (*Host, error) {
	cfg, errConfig := cfg.withDefaults()
	shape, errShape := tally.NewShape(cfg.Tally)
	if err := errors.Join(errConfig, errShape); err != nil {
		return nil, err
	}
	return &Host{cfg: cfg, shape: shape}, nil
}

func (c Config) withDefaults() (Config, error) {
	if len(c.Include) == 0 {
		c.Include = []string{"*"}
	}
	if c.RunInterval == 0 {
		c.RunInterval = DefaultRunInterval
	}
	if c.MaxRings == 0 {
		c.MaxRings = DefaultMaxRings
	}
	if c.StaleAfter == 0 {
		c.StaleAfter = DefaultStaleAfter
	}
	if c.Report == nil {
		c.Report = func(notice.Notice) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	errs := []error{
		discover.CheckDirectories(c.Directories),
		discover.CheckPatterns("include", c.Include), discover.CheckPatterns("exclude", c.Exclude),
	}
	if c.RunInterval < time.Millisecond {
		errs = append(errs, fmt.Errorf("run interval is %v: it must be 1ms or more", c.RunInterval))
	}
	if c.MaxRings < 0 {
		errs = append(errs, fmt.Errorf("max rings is %d: it must be 1 or more", c.MaxRings))
	}
	if c.StaleAfter < 0 {
		errs = append(errs, fmt.Errorf("stale after is %v: it must be positive", c.StaleAfter))
	}
	return c, errors.Join(errs...)
}
