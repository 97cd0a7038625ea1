// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/host"
	"github.com/nixl-otel/nixl-otel/internal/nixlenv"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// leastInterval is the shortest interval that the receiver accepts.
const leastInterval = time.Millisecond

// Validate checks the configuration. Each error names the key and its value, and
// states what to use instead.
func (c *Config) Validate() error {
	return errors.Join(c.checkDirectories(), c.checkDiscovery(), c.checkTimes(), c.checkRings(), c.checkHistograms(), c.checkLogs())
}

func (c *Config) checkDirectories() error {
	errs := []error{discover.CheckDirectories(c.Directories)}
	if len(c.Directories) == 0 && c.Discovery == (DiscoveryConfig{}) {
		errs = append(errs, errors.New("directories: list at least one, such as /run/nixl, or configure discovery"))
	}
	for _, dir := range c.Directories {
		if dir != "" && !filepath.IsAbs(dir) {
			errs = append(errs, fmt.Errorf("directories: %q%s must be an absolute path, such as /run/nixl", dir, fromEnvironment(dir)))
		}
	}
	if len(c.Include) == 0 {
		errs = append(errs, errors.New(`include: an empty list selects no ring: use ["*"] or remove the key to select all rings`))
	}
	return errors.Join(append(errs, discover.CheckPatterns("include", c.Include), discover.CheckPatterns("exclude", c.Exclude))...)
}

func (c *Config) checkDiscovery() error {
	errs := faults{discover.IdentifyBy(c.IdentifyBy).Check()}
	if p := c.Discovery.Processes; p != nil {
		if p.Interval < leastDiscovery {
			errs.add("discovery::processes::interval: %v is too short: use at least %v, such as %v", p.Interval, leastDiscovery, discover.DefaultInterval)
		}
		errs = append(errs, checkEnvAttributes(p.EnvAttributes))
	}
	if k := c.Discovery.Kubelet; k != nil {
		if !filepath.IsAbs(k.Path) {
			errs.add("discovery::kubelet::path: %q must be an absolute path, such as %s", k.Path, discover.DefaultKubeletPods)
		}
		if len(k.Volumes) == 0 {
			errs.add(`discovery::kubelet::volumes: an empty list selects no volume: use ["*"] or remove the key to select all volumes`)
		}
		errs = append(errs, discover.CheckPatterns("discovery::kubelet::volumes", k.Volumes))
	}
	if c.ServiceName == "" {
		errs.add("service_name: must not be empty: set a name, or remove the key for %s", semconv.ServiceNameNIXL)
	}
	return errors.Join(errs...)
}

// checkEnvAttributes reports names that can't be used, and variables that would
// overwrite each other's value.
func checkEnvAttributes(attributes map[string]string) error {
	var errs faults
	setBy := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		attribute := attributes[name]
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			errs.add("discovery::processes::env_attributes: %q is not the name of an environment variable", name)
		case attribute == "":
			errs.add("discovery::processes::env_attributes: %s has no attribute: name one, such as %s", name, semconv.LocalRank)
		case slices.Contains(discover.Reserved, attribute):
			errs.add("discovery::processes::env_attributes: %s: the attribute %s identifies agents and can't be set by an environment variable", name, attribute)
		case setBy[attribute] != "":
			errs.add("discovery::processes::env_attributes: %s and %s both set %s: keep one of them", setBy[attribute], name, attribute)
		default:
			setBy[attribute] = name
		}
	}
	return errors.Join(errs...)
}

// leastDiscovery is the shortest allowed interval between two searches for processes.
const leastDiscovery = 100 * time.Millisecond

// fromEnvironment names the variable that a directory comes from, if any.
func fromEnvironment(dir string) string {
	for _, name := range []string{nixlenv.Dir, nixlenv.OutputPath} {
		if os.Getenv(name) == dir {
			return fmt.Sprintf(" (from %s)", name)
		}
	}
	return ""
}

func (c *Config) checkTimes() error {
	var errs faults
	if c.RunInterval == 0 && c.noRunInterval != nil {
		errs.add("run_interval: not set, and the value in the environment is invalid: %w", c.noRunInterval)
	} else if c.RunInterval < leastInterval {
		errs.add("run_interval: %v is too short: use that of the agents, at least %v, such as %v",
			c.RunInterval, leastInterval, host.DefaultRunInterval)
	}
	if c.CollectionInterval < leastInterval {
		errs.add("collection_interval: %v is too short: use at least %v, such as %v",
			c.CollectionInterval, leastInterval, defaultCollectionInterval)
	}
	if c.InitialDelay < 0 {
		errs.add("initial_delay: %v is negative: use 0s to export at once, or a delay such as 1s", c.InitialDelay)
	}
	if c.Timeout < 0 || c.Timeout > 0 && c.Timeout < leastInterval {
		errs.add("timeout: %v is too short: use 0s for no limit, or at least %v, such as 5s", c.Timeout, leastInterval)
	}
	if c.StaleAfter < host.MinStaleAfter {
		errs.add("stale_after: %v is too short: use at least %v, the interval between two checks of the files; "+
			"better longer than an agent takes to restart, such as 5m", c.StaleAfter, host.MinStaleAfter)
	}
	return errors.Join(errs...)
}

func (c *Config) checkRings() error {
	var errs faults
	if c.StorageID != nil && c.Mode != ringbuf.Consume {
		errs.add("storage: mode %v has no positions to store: set mode: consume, or remove storage", c.Mode)
	}
	if c.AllowedUIDs != nil && len(c.AllowedUIDs) == 0 {
		errs.add("allowed_uids: %w", errNobody)
	}
	for _, id := range c.AllowedUIDs {
		if err := wantUID(id); err != nil {
			errs.add("allowed_uids: %w", err)
		}
	}
	if c.MaxRings < 1 {
		errs.add("max_rings: %d must be 1 or more", c.MaxRings)
	}
	if c.MaxEventNames < 1 {
		errs.add("max_event_names: %d must be 1 or more", c.MaxEventNames)
	}
	return errors.Join(errs...)
}

func (c *Config) checkHistograms() error {
	errs := faults{c.Histograms.Duration.check("duration"), c.Histograms.Size.check("size"), c.Histograms.Throughput.check("throughput")}
	if c.Histograms.Duration.SizeClass && c.Histograms.Duration.Kind == tally.NoHistogram {
		errs.add("histograms: duration: size_class needs a histogram, but kind is none: remove size_class, or set another kind")
	}
	if _, err := tally.NewShape(c.tally()); err != nil {
		errs.add("histograms: %w", err)
	}
	return errors.Join(errs...)
}

// check reports keys that would have no effect.
func (h *HistogramConfig) check(key string) error {
	var errs faults
	if len(h.Bounds) > 0 && h.Kind != tally.Explicit {
		errs.add("histograms: %s: bounds %v need kind: explicit, but kind is %s: remove bounds, or set kind: explicit", key, h.Bounds, h.Kind)
	}
	if h.MaxSize != tally.DefaultMaxSize && h.Kind != tally.Exponential {
		errs.add("histograms: %s: max_size %d needs kind: exponential, but kind is %s: remove max_size, or set kind: exponential", key, h.MaxSize, h.Kind)
	} else if h.MaxSize == 0 {
		errs.add("histograms: %s: max_size is 0: use %d, for example", key, tally.DefaultMaxSize)
	}
	return errors.Join(errs...)
}

// faults collects the errors of a configuration.
type faults []error

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Errorf(format, args...)) }
