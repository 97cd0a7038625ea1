// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// maxUID is the largest user ID. The number above it means that there is no user.
const (
	maxUID int64 = math.MaxUint32 - 1
	noUser       = " is not a user ID: it must be from 0 to %d"
)

// Validate checks the configuration. Each error names the key and its value, and
// states what to use instead.
func (c *Config) Validate() error {
	return errors.Join(c.checkEngine(), c.checkTimes(), c.checkRings(), c.checkHistograms(), c.checkLogs())
}

// checkEngine checks the keys that the engine has, too, and those whose zero value the
// engine takes for its default.
func (c *Config) checkEngine() error {
	cfg := c.engine(nil)
	var errs faults
	errs = append(errs, cfg.Check())
	for _, dir := range c.Directories {
		switch {
		case strings.ContainsAny(dir, "*?[{"):
			errs.add("directories: %q is a pattern: list each directory, and use include for patterns of files and subdirectories", dir)
		case dir != "" && !filepath.IsAbs(dir):
			errs.add("directories: %q must be an absolute path, such as /run/nixl", dir)
		}
	}
	if len(c.Include) == 0 {
		errs.add(`include: an empty list selects no ring: use ["*"] or remove the key to select all rings`)
	}
	for _, key := range ownAttributes { // a variable that isn't set must not change the identity of agents
		if value, ok := c.Resource[key]; ok && value == "" {
			errs.add("resource::%s: empty: set the environment variable that it comes from, or remove the key", key)
		}
	}
	return errors.Join(errs...)
}

func (c *Config) checkTimes() error {
	var errs faults
	if c.CollectionInterval < engine.LeastInterval {
		errs.add("collection_interval: %v is too short: use at least %v, such as %v",
			c.CollectionInterval, engine.LeastInterval, defaultCollectionInterval)
	}
	if c.InitialDelay < 0 {
		errs.add("initial_delay: %v is negative: use 0s to export at once, or a delay such as 1s", c.InitialDelay)
	}
	if c.Timeout < 0 || c.Timeout > 0 && c.Timeout < engine.LeastInterval {
		errs.add("timeout: %v is too short: use 0s for no limit, or at least %v, such as 5s", c.Timeout, engine.LeastInterval)
	}
	return errors.Join(errs...)
}

func (c *Config) checkRings() error {
	var errs faults
	if c.StorageID != nil && c.Mode != ringbuf.Consume {
		errs.add("storage: mode %v has no positions to store: set mode: consume, or remove storage", c.Mode)
	}
	if c.AllowedUIDs != nil && len(c.AllowedUIDs) == 0 {
		errs.add("allowed_uids: an empty list allows nobody: list the agents' user IDs, such as [1000], or remove the key to allow everyone")
	}
	for _, id := range c.AllowedUIDs {
		if id < 0 || id > maxUID {
			errs.add("allowed_uids: %d"+noUser, id, maxUID)
		}
	}
	return errors.Join(errs...)
}

func (c *Config) checkHistograms() error {
	var errs faults
	for _, of := range []struct {
		key string
		tally.HistogramConfig
	}{{"duration", c.Histograms.Duration}, {"size", c.Histograms.Size}, {"throughput", c.Histograms.Throughput}} {
		if len(of.Bounds) > 0 && of.Kind != tally.Explicit { // they would have no effect
			errs.add("histograms: %s: bounds %v need kind: explicit, but kind is %s: remove bounds, or set kind: explicit", of.key, of.Bounds, of.Kind)
		}
	}
	if _, err := tally.NewShape(c.Histograms); err != nil {
		errs.add("histograms: %w", err)
	}
	return errors.Join(errs...)
}

// faults collects the errors of a configuration.
type faults []error

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Errorf(format, args...)) }
