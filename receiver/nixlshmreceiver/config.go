// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"os"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/scraper/scraperhelper"

	"github.com/nixl-otel/nixl-otel/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/host"
	"github.com/nixl-otel/nixl-otel/internal/nixlenv"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Config is the configuration of the receiver. The README describes each key.
type Config struct {
	ControllerConfig              `mapstructure:",squash"`
	metadata.MetricsBuilderConfig `mapstructure:",squash"`

	Directories []string        `mapstructure:"directories"`
	Discovery   DiscoveryConfig `mapstructure:"discovery"`
	IdentifyBy  []string        `mapstructure:"identify_by"`
	Include     []string        `mapstructure:"include"`
	Exclude     []string        `mapstructure:"exclude"`
	RunInterval time.Duration   `mapstructure:"run_interval"`
	Mode        ringbuf.Mode    `mapstructure:"mode"`

	// HostName is the name of the agents' host; the Collector's own where it is
	// empty, which in a container isn't the same.
	HostName string `mapstructure:"host_name"`

	// ServiceName is the service.name of agents whose environment has none.
	ServiceName string `mapstructure:"service_name"`

	// AllowedUIDs are the users whose rings are opened; all where it is nil.
	AllowedUIDs   []uint32      `mapstructure:"allowed_uids"`
	MaxRings      int           `mapstructure:"max_rings"`
	MaxEventNames int           `mapstructure:"max_event_names"`
	StaleAfter    time.Duration `mapstructure:"stale_after"`

	Histograms HistogramsConfig `mapstructure:"histograms"`
	Logs       LogsConfig       `mapstructure:"logs"`

	// StorageID names a storage extension that keeps the totals, and how far
	// each ring was read, over a crash.
	StorageID *component.ID `mapstructure:"storage"`

	// ExporterNames adds the series that NIXL's own Prometheus exporter
	// serves, for dashboards that exist.
	ExporterNames bool `mapstructure:"nixl_exporter_names"`

	noRunInterval error // why the environment has none; nil where one is set
}

// ControllerConfig says when to report. It is scraperhelper's, but for checks
// of its own: what they say names neither the key nor its value.
type ControllerConfig scraperhelper.ControllerConfig

// DiscoveryConfig says how directories of rings are discovered. A part that is nil
// is disabled.
type DiscoveryConfig struct {
	Processes *ProcessesConfig `mapstructure:"processes"`
	Kubelet   *KubeletConfig   `mapstructure:"kubelet"`
}

// ProcessesConfig discovers the agents of all processes of the host.
type ProcessesConfig struct {
	Interval time.Duration `mapstructure:"interval"`
	// EnvAttributes maps environment variables of the agents' processes to resource
	// attributes.
	EnvAttributes map[string]string `mapstructure:"env_attributes"`
}

// KubeletConfig discovers the emptyDir volumes of the pods of a node.
type KubeletConfig struct {
	Path    string   `mapstructure:"path"`
	Volumes []string `mapstructure:"volumes"`
}

func defaultProcesses() *ProcessesConfig {
	return &ProcessesConfig{
		Interval: discover.DefaultInterval, EnvAttributes: map[string]string{"LOCAL_RANK": semconv.LocalRank},
	}
}

func defaultKubelet() *KubeletConfig {
	return &KubeletConfig{Path: discover.DefaultKubeletPods, Volumes: []string{"*"}}
}

// HistogramsConfig says how distributions are reported.
type HistogramsConfig struct {
	Duration   DurationConfig  `mapstructure:"duration"`   // bounds in seconds
	Size       HistogramConfig `mapstructure:"size"`       // bounds in bytes
	Throughput HistogramConfig `mapstructure:"throughput"` // bounds in bytes per second
}

// DurationConfig says how distributions of durations are reported.
type DurationConfig struct {
	HistogramConfig `mapstructure:",squash"`

	// SizeClass adds the attribute nixl.transfer.size_class.
	SizeClass bool `mapstructure:"size_class"`
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
	return &Config{
		ControllerConfig:     ControllerConfig(controller),
		MetricsBuilderConfig: metadata.NewDefaultMetricsBuilderConfig(),
		Directories:          []string{agents.Dir()},
		IdentifyBy:           slices.Clone(discover.DefaultIdentifyBy),
		Include:              []string{"*"},
		RunInterval:          runInterval, // 0 where there was an error, which Validate refuses
		Mode:                 ringbuf.Consume,
		ServiceName:          semconv.ServiceNameNIXL,
		MaxRings:             host.DefaultMaxRings,
		MaxEventNames:        tally.DefaultMaxNames,
		StaleAfter:           host.DefaultStaleAfter,
		Histograms: HistogramsConfig{
			Duration:   DurationConfig{HistogramConfig: HistogramConfig{Kind: tally.Explicit, MaxSize: tally.DefaultMaxSize}},
			Size:       HistogramConfig{Kind: tally.Explicit, MaxSize: tally.DefaultMaxSize},
			Throughput: HistogramConfig{Kind: tally.Explicit, MaxSize: tally.DefaultMaxSize},
		},
		Logs:          defaultLogsConfig(),
		noRunInterval: err,
	}
}

// Unmarshal reads the configuration. What the values mean is checked by
// [Config.Validate].
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if err := checkValues(conf); err != nil {
		return err
	}
	if conf.IsSet("run_interval") {
		c.noRunInterval = nil
	}
	discovers := conf.IsSet("discovery::processes") || conf.IsSet("discovery::kubelet")
	if discovers && !conf.IsSet("directories") {
		c.Directories = nil
	}
	if conf.IsSet("discovery::processes") {
		c.Discovery.Processes = defaultProcesses()
		if conf.IsSet("discovery::processes::env_attributes") {
			c.Discovery.Processes.EnvAttributes = nil // or the default's would be added to it
		}
	}
	if conf.IsSet("discovery::kubelet") {
		c.Discovery.Kubelet = defaultKubelet()
	}
	return conf.Unmarshal(c)
}

func (c *Config) tally() tally.Config {
	return tally.Config{
		Duration:   tally.HistogramConfig(c.Histograms.Duration.HistogramConfig),
		Size:       tally.HistogramConfig(c.Histograms.Size),
		Throughput: tally.HistogramConfig(c.Histograms.Throughput),
		MaxNames:   max(c.MaxEventNames, 0), // Validate has its own words for less

		SizeClasses: c.Histograms.Duration.SizeClass,
	}
}

// host returns the configuration of what discovers and drains the rings.
func (c *Config) host(report func(notice.Notice)) host.Config {
	cfg := host.Config{
		Directories: c.Directories,
		IdentifyBy:  c.IdentifyBy,
		Include:     c.Include,
		Exclude:     c.Exclude,
		Mode:        c.Mode,
		RunInterval: c.RunInterval,
		MaxRings:    c.MaxRings,
		AllowedUIDs: c.AllowedUIDs,
		StaleAfter:  c.StaleAfter,
		Tally:       c.tally(),
		Stores:      true,
		Report:      report,
	}
	if p := c.Discovery.Processes; p != nil {
		cfg.Processes = &discover.Processes{Interval: p.Interval, EnvAttributes: p.EnvAttributes}
	}
	if k := c.Discovery.Kubelet; k != nil {
		cfg.Kubelet = &discover.Kubelet{Pods: k.Path, Volumes: k.Volumes}
	}
	return cfg
}
