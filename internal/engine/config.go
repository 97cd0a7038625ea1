// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// DefaultStaleAfter is the default of [Config.StaleAfter].
const DefaultStaleAfter = 5 * time.Minute

// LeastInterval is the shortest interval that makes sense.
const LeastInterval = time.Millisecond

// Config configures a [Engine]. At least one of Directories, Processes and Kubelet must
// be set.
type Config struct {
	Directories []string            // contain one ring per agent, named after the agent
	Processes   *discover.Processes // finds the telemetry directories of all processes
	Kubelet     *discover.Kubelet   // finds the emptyDir volumes of pods
	PodUID      string              // the pod of the agents in Directories; empty without one
	IdentifyBy  discover.IdentifyBy // parts of the identity of agents in pods and containers
	Resource    discover.Resource   // attributes of all agents
	Include     []string            // doublestar patterns, relative to the directory; * if empty
	Observe     bool                // leave the rings unchanged
	RunInterval time.Duration       // the agents' flush interval; a ring is drained at least four times as often, by an observer twice
	AllowedUIDs []uint32            // owners whose rings are opened; any if empty
	StaleAfter  time.Duration
	Tally       tally.Config
	// Stores enables reading the stores of NIXL's prometheus_mp exporter. Include
	// applies to the names of their agents.
	Stores bool

	// Stream returns the attributes under which a backend sees an agent's totals; see
	// [drain.Config]. It may be nil.
	Stream func(*drain.Snapshot) attribute.Set
	// Report receives the notices for the operator. It must not block.
	Report func(notice.Notice)
	// Handler receives what is read from rings.
	Handler Handler
	// Now is the clock; time.Now if nil.
	Now func() time.Time

	// Telemetry receives measurements of the engine's own work.
	Telemetry Telemetry
}

// Telemetry receives measurements of discovering, draining and saving. Its functions
// may be nil, and must not block.
type Telemetry struct {
	Lag    func(time.Duration)                 // delay of a round of drains
	Events func(uint64)                        // number of events that a round counted
	Saved  func(took time.Duration, err error) // duration and error of a save

	Searched func(source string, took time.Duration) // duration of a search of processes or of the kubelet's pods
}

// Check reports the invalid values. Each error starts with the key of the receiver's
// configuration.
func (c *Config) Check() error {
	errs := []error{discover.CheckDirectories(c.Directories), c.checkSources()}
	var env map[string]string
	if p := c.Processes; p != nil {
		errs, env = append(errs, p.Check()), p.EnvAttributes
	}
	if k := c.Kubelet; k != nil {
		errs = append(errs, k.Check())
	}
	errs = append(errs, c.IdentifyBy.Check(), discover.CheckPatterns("include", c.Include), c.Resource.Check(env))
	if c.RunInterval != 0 && c.RunInterval < LeastInterval {
		errs = append(errs, fmt.Errorf("run interval: %v is too short: use that of the agents, at least %v, such as %v",
			c.RunInterval, LeastInterval, process.DefaultRunInterval))
	}
	if c.StaleAfter < discover.ProbeInterval {
		errs = append(errs, fmt.Errorf("stale_after: %v is too short: use at least %v, the interval between two checks of the files; "+
			"better longer than an agent takes to restart, such as 5m", c.StaleAfter, discover.ProbeInterval))
	}
	return errors.Join(errs...)
}

func (c *Config) checkSources() error {
	switch {
	case len(c.Directories) > 0:
		return nil
	case c.Processes == nil && c.Kubelet == nil:
		return errors.New("directories: none: list at least one, such as /run/nixl, or set discovery::processes or discovery::kubelet")
	case c.PodUID != "":
		return fmt.Errorf("resource::k8s.pod.uid: %q has no effect without directories: list one, or remove the key; discovered agents have their own pods", c.PodUID)
	}
	return nil
}

// withDefaults returns the configuration with defaults instead of zeros.
func (c Config) withDefaults() Config {
	if len(c.Include) == 0 {
		c.Include = []string{"*"}
	}
	if len(c.IdentifyBy) == 0 {
		c.IdentifyBy = DefaultIdentifyBy
	}
	c.RunInterval = cmp.Or(c.RunInterval, process.DefaultRunInterval)
	c.StaleAfter = cmp.Or(c.StaleAfter, DefaultStaleAfter)
	if c.Report == nil {
		c.Report = func(notice.Notice) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}
