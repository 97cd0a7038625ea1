package nixlshmreceiver

import (
	"errors"
	"fmt"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/internal/watch"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// leastInterval bounds what a timer can be asked for.
const leastInterval = time.Millisecond

// Validate checks what the configuration means. Each error names the key, its
// value, and what to write instead.
func (c *Config) Validate() error {
	return errors.Join(c.checkDirectories(), c.checkTimes(), c.checkRings(), c.checkHistograms())
}

func (c *Config) checkDirectories() error {
	errs := []error{watch.CheckDirectories(c.Directories)}
	return errors.Join(append(errs, watch.CheckPatterns("include", c.Include), watch.CheckPatterns("exclude", c.Exclude))...)
}

func (c *Config) checkTimes() error {
	var errs faults
	if c.RunInterval == 0 && c.noRunInterval != nil {
		errs.add("run_interval: it isn't set, and the environment's can't be used: %w", c.noRunInterval)
	} else if c.RunInterval < leastInterval {
		errs.add("run_interval: %v is too short: write that of the agents, %v or more, such as %v",
			c.RunInterval, leastInterval, watch.DefaultRunInterval)
	}
	if c.CollectionInterval < leastInterval {
		errs.add("collection_interval: %v is too short: write %v or more, such as %v",
			c.CollectionInterval, leastInterval, defaultCollectionInterval)
	}
	if c.Timeout < 0 {
		errs.add("timeout: %v leaves no time to hand on a report: write 0s for no limit, or a time such as 5s", c.Timeout)
	}
	if c.StaleAfter <= 0 {
		errs.add("stale_after: %v is too short: write a time such as %v", c.StaleAfter, watch.DefaultStaleAfter)
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
	if _, err := tally.NewShape(c.tally()); err != nil {
		return fmt.Errorf("histograms: %w", err)
	}
	return nil
}

// faults are the errors of a configuration.
type faults []error

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Errorf(format, args...)) }
