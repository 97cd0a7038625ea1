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

// leastInterval bounds what a timer can be asked for.
const leastInterval = time.Millisecond

// Validate checks what the configuration means. Each error names the key, its
// value, and what to write instead.
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
			errs = append(errs, fmt.Errorf("directories: %q is relative to where the Collector happens to be started%s: "+
				"write a path that begins with /, such as /run/nixl", dir, fromEnvironment(dir)))
		}
	}
	if len(c.Include) == 0 {
		errs = append(errs, errors.New(`include: [] leaves no ring: write ["*"], or leave the key out, for all rings`))
	}
	return errors.Join(append(errs, discover.CheckPatterns("include", c.Include), discover.CheckPatterns("exclude", c.Exclude))...)
}

func (c *Config) checkDiscovery() error {
	errs := faults{discover.IdentifyBy(c.IdentifyBy).Check()}
	if p := c.Discovery.Processes; p != nil {
		if p.Interval < leastDiscovery {
			errs.add("discovery::processes::interval: %v is too short: write %v or more, such as %v", p.Interval, leastDiscovery, discover.DefaultInterval)
		}
		errs = append(errs, checkEnvAttributes(p.EnvAttributes))
	}
	if k := c.Discovery.Kubelet; k != nil {
		if !filepath.IsAbs(k.Path) {
			errs.add("discovery::kubelet::path: %q must be an absolute path, such as %s", k.Path, discover.DefaultKubeletPods)
		}
		if len(k.Volumes) == 0 {
			errs.add(`discovery::kubelet::volumes: [] leaves no volume: write ["*"], or leave the key out, for all volumes`)
		}
		errs = append(errs, discover.CheckPatterns("discovery::kubelet::volumes", k.Volumes))
	}
	if c.ServiceName == "" {
		errs.add("service_name: it is empty: write a name, or leave the key out for %s", semconv.ServiceNameNIXL)
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
			errs.add("discovery::processes::env_attributes: %s has no attribute: write the name of one, such as %s", name, semconv.LocalRank)
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

// fromEnvironment says which variable a directory is that of, if it is.
func fromEnvironment(dir string) string {
	for _, name := range []string{nixlenv.Dir, nixlenv.OutputPath} {
		if os.Getenv(name) == dir {
			return fmt.Sprintf(" (it is that of %s)", name)
		}
	}
	return ""
}

func (c *Config) checkTimes() error {
	var errs faults
	if c.RunInterval == 0 && c.noRunInterval != nil {
		errs.add("run_interval: it isn't set, and the environment's can't be used: %w", c.noRunInterval)
	} else if c.RunInterval < leastInterval {
		errs.add("run_interval: %v is too short: write that of the agents, %v or more, such as %v",
			c.RunInterval, leastInterval, host.DefaultRunInterval)
	}
	if c.CollectionInterval < leastInterval {
		errs.add("collection_interval: %v is too short: write %v or more, such as %v",
			c.CollectionInterval, leastInterval, defaultCollectionInterval)
	}
	if c.InitialDelay < 0 {
		errs.add("initial_delay: %v is negative: write 0s to report at once, or a time such as 1s", c.InitialDelay)
	}
	if c.Timeout < 0 || c.Timeout > 0 && c.Timeout < leastInterval {
		errs.add("timeout: %v leaves no time to hand on a report: write 0s for no limit, or %v or more, such as 5s", c.Timeout, leastInterval)
	}
	if c.StaleAfter < host.MinStaleAfter {
		errs.add("stale_after: %v is too short: write %v, the time between two looks at the files, or more; "+
			"better longer than an agent takes to restart, such as 5m", c.StaleAfter, host.MinStaleAfter)
	}
	return errors.Join(errs...)
}

func (c *Config) checkRings() error {
	var errs faults
	if c.StorageID != nil && c.Mode != ringbuf.Consume {
		errs.add("storage: mode %v leaves no position in the rings that could be resumed; set mode: consume, or no storage", c.Mode)
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
		errs.add("histograms: duration: size_class: there is no histogram with kind: none: leave it out, or write another kind")
	}
	if _, err := tally.NewShape(c.tally()); err != nil {
		errs.add("histograms: %w", err)
	}
	return errors.Join(errs...)
}

// check finds what would have no effect.
func (h *HistogramConfig) check(key string) error {
	var errs faults
	if len(h.Bounds) > 0 && h.Kind != tally.Explicit {
		errs.add("histograms: %s: bounds %v are for kind: explicit, and it is %s: leave them out, or write kind: explicit", key, h.Bounds, h.Kind)
	}
	if h.MaxSize != tally.DefaultMaxSize && h.Kind != tally.Exponential {
		errs.add("histograms: %s: max_size %d is for kind: exponential, and it is %s: leave it out, or write kind: exponential", key, h.MaxSize, h.Kind)
	} else if h.MaxSize == 0 {
		errs.add("histograms: %s: max_size is 0: write %d, for example", key, tally.DefaultMaxSize)
	}
	return errors.Join(errs...)
}

// faults are the errors of a configuration.
type faults []error

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Errorf(format, args...)) }
