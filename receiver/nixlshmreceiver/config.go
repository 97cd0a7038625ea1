package nixlshmreceiver

import (
	"errors"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/scraper/scraperhelper"

	"github.com/nixl-otel/nixl-otel/internal/nixlenv"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/internal/watch"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Config is the configuration of the receiver. The README describes each key.
type Config struct {
	scraperhelper.ControllerConfig `mapstructure:",squash"`
	metadata.MetricsBuilderConfig  `mapstructure:",squash"`

	Directories []string      `mapstructure:"directories"`
	Include     []string      `mapstructure:"include"`
	Exclude     []string      `mapstructure:"exclude"`
	RunInterval time.Duration `mapstructure:"run_interval"`
	Mode        ringbuf.Mode  `mapstructure:"mode"`

	// HostName is the name of the agents' host; the Collector's own where it is
	// empty, which in a container isn't the same.
	HostName string `mapstructure:"host_name"`

	// AllowedUIDs are the users whose rings are opened; all where it is nil.
	AllowedUIDs   []uint32      `mapstructure:"allowed_uids"`
	MaxRings      int           `mapstructure:"max_rings"`
	MaxEventNames int           `mapstructure:"max_event_names"`
	StaleAfter    time.Duration `mapstructure:"stale_after"`

	Histograms HistogramsConfig `mapstructure:"histograms"`

	// StorageID names a storage extension that keeps the totals, and how far
	// each ring was read, over a crash.
	StorageID *component.ID `mapstructure:"storage"`

	// ExporterNames adds the series that NIXL's own Prometheus exporter
	// serves, for dashboards that exist.
	ExporterNames bool `mapstructure:"nixl_exporter_names"`
}

// HistogramsConfig says how distributions are reported.
type HistogramsConfig struct {
	Duration HistogramConfig `mapstructure:"duration"` // bounds in seconds
	Size     HistogramConfig `mapstructure:"size"`     // bounds in bytes
}

// HistogramConfig says how one kind of distribution is reported.
type HistogramConfig struct {
	Kind    tally.HistogramKind `mapstructure:"kind"`     // explicit, exponential or none
	Bounds  []float64           `mapstructure:"bounds"`   // of an explicit histogram
	MaxSize int                 `mapstructure:"max_size"` // buckets of an exponential histogram
}

const defaultCollectionInterval = 10 * time.Second

func createDefaultConfig() *Config {
	controller := scraperhelper.NewDefaultControllerConfig()
	controller.CollectionInterval = defaultCollectionInterval
	agents := nixlenv.Env(os.LookupEnv) // their settings, as far as they are this process's too
	runInterval, err := agents.RunInterval()
	if err != nil {
		runInterval = 0 // which Validate refuses, unless it is set
	}
	return &Config{
		ControllerConfig:     controller,
		MetricsBuilderConfig: metadata.NewDefaultMetricsBuilderConfig(),
		Directories:          []string{agents.Dir()},
		Include:              []string{"*"},
		RunInterval:          runInterval,
		Mode:                 ringbuf.Consume,
		MaxRings:             watch.DefaultMaxRings,
		MaxEventNames:        tally.DefaultMaxNames,
		StaleAfter:           watch.DefaultStaleAfter,
		Histograms: HistogramsConfig{
			Duration: HistogramConfig{Kind: tally.Explicit, MaxSize: tally.DefaultMaxSize},
			Size:     HistogramConfig{Kind: tally.Explicit, MaxSize: tally.DefaultMaxSize},
		},
	}
}

// Unmarshal reads the configuration. What the values mean is checked by
// [Config.Validate].
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if err := checkValues(conf); err != nil {
		return err
	}
	return conf.Unmarshal(c)
}

// Validate checks what the configuration holds. Each error names its key.
func (c *Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(c.RunInterval >= time.Millisecond,
		"run_interval: %v is too short, it must be 1ms or more (unless it is set, it comes from %s=%q, in milliseconds)",
		c.RunInterval, nixlenv.RunInterval, os.Getenv(nixlenv.RunInterval))
	check(c.StorageID == nil || c.Mode == ringbuf.Consume,
		"storage: mode %v leaves no position in the rings that could be resumed; set mode: consume, or no storage", c.Mode)
	check(c.AllowedUIDs == nil || len(c.AllowedUIDs) > 0, "allowed_uids: %w", errNobody)
	for _, id := range c.AllowedUIDs {
		check(id <= maxUID, "allowed_uids: %w", wantUID(id))
	}
	check(c.MaxRings > 0, "max_rings: %d must be 1 or more", c.MaxRings)
	check(c.MaxEventNames > 0, "max_event_names: %d must be 1 or more", c.MaxEventNames)
	check(c.StaleAfter > 0, "stale_after: %v must be more than 0", c.StaleAfter)
	errs = append(errs, watch.CheckDirectories(c.Directories),
		watch.CheckPatterns("include", c.Include), watch.CheckPatterns("exclude", c.Exclude))
	if _, err := tally.NewShape(c.tally()); err != nil {
		errs = append(errs, fmt.Errorf("histograms: %w", err))
	}
	return errors.Join(errs...)
}

func (c *Config) tally() tally.Config {
	return tally.Config{
		Duration: tally.HistogramConfig(c.Histograms.Duration),
		Size:     tally.HistogramConfig(c.Histograms.Size),
		MaxNames: max(c.MaxEventNames, 0), // Validate has its own words for less
	}
}

func (c *Config) watch(report func(watch.Notice)) watch.Config {
	return watch.Config{
		Directories: c.Directories,
		Include:     c.Include,
		Exclude:     c.Exclude,
		Mode:        c.Mode,
		RunInterval: c.RunInterval,
		MaxRings:    c.MaxRings,
		AllowedUIDs: c.AllowedUIDs,
		StaleAfter:  c.StaleAfter,
		Tally:       c.tally(),
		Report:      report,
	}
}
