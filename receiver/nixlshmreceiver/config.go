// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/scraper/scraperhelper"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Config is the configuration of the receiver. config.schema.yaml documents each key.
type Config struct {
	ControllerConfig              `mapstructure:",squash"`
	metadata.MetricsBuilderConfig `mapstructure:",squash"`

	// Directories contain rings and stores. The paths must be absolute.
	Directories []string `mapstructure:"directories"`

	// Discovery finds more directories.
	Discovery DiscoveryConfig `mapstructure:"discovery"`

	// IdentifyBy lists what identifies an agent in a pod or container.
	IdentifyBy []string `mapstructure:"identify_by"`

	// Resource has attributes that the receiver adds to the resource of every agent. The
	// attributes of [ownAttributes] replace the receiver's defaults.
	Resource map[string]string `mapstructure:"resource"`

	// Include has patterns of the names of rings and agents.
	Include []string `mapstructure:"include"`

	// Mode defines whether the receiver consumes events or only observes them.
	Mode ringbuf.Mode `mapstructure:"mode"`

	// AllowedUIDs are the owners of the rings and stores that are opened. Nil allows
	// everyone. The decoder would make a number beyond 32 bits another user's.
	AllowedUIDs []int64 `mapstructure:"allowed_uids"`

	// StaleAfter is how long an agent is reported after it has exited and written its
	// last event.
	StaleAfter time.Duration `mapstructure:"stale_after"`

	// Histograms defines the form of the histograms.
	Histograms tally.Config `mapstructure:"histograms"`

	// Logs defines what is logged.
	Logs LogsConfig `mapstructure:"logs"`

	// StorageID names a storage extension for totals and positions, which survive a
	// crash there.
	StorageID *component.ID `mapstructure:"storage"`
}

// ControllerConfig defines when totals are exported. It is scraperhelper's type
// without its checks, whose errors name neither the key nor its value.
type ControllerConfig scraperhelper.ControllerConfig

// DiscoveryConfig defines how directories of rings are discovered.
type DiscoveryConfig struct {
	Processes configoptional.Optional[ProcessesConfig] `mapstructure:"processes"`
	Kubelet   configoptional.Optional[KubeletConfig]   `mapstructure:"kubelet"`
}

// ProcessesConfig discovers the agents of all processes of the host.
type ProcessesConfig struct {
	Interval time.Duration `mapstructure:"interval"`
	// EnvAttributes maps environment variables of the agents' processes to resource
	// attributes.
	EnvAttributes map[string]string `mapstructure:"env_attributes"`
	// OTelResourceAttributes are patterns of the attributes that are taken from the
	// processes' OTEL_RESOURCE_ATTRIBUTES.
	OTelResourceAttributes []string `mapstructure:"otel_resource_attributes"`
}

// KubeletConfig discovers the emptyDir volumes of the pods of a node.
type KubeletConfig struct {
	Path string `mapstructure:"path"`
}

const defaultCollectionInterval = 10 * time.Second

func createDefaultConfig() *Config {
	controller := scraperhelper.NewDefaultControllerConfig()
	controller.CollectionInterval = defaultCollectionInterval
	return &Config{
		ControllerConfig:     ControllerConfig(controller),
		MetricsBuilderConfig: metadata.NewDefaultMetricsBuilderConfig(),
		Discovery: DiscoveryConfig{
			Processes: configoptional.Default(ProcessesConfig{
				Interval: engine.DefaultSearchInterval, OTelResourceAttributes: slices.Clone(engine.DefaultAttributes),
			}),
			Kubelet: configoptional.Default(KubeletConfig{Path: engine.DefaultKubeletPods}),
		},
		IdentifyBy: slices.Clone(engine.DefaultIdentifyBy),
		Include:    []string{"*"},
		Mode:       ringbuf.Consume,
		StaleAfter: engine.DefaultStaleAfter,
		Histograms: tally.Config{
			Duration:   tally.HistogramConfig{Kind: tally.Explicit},
			Size:       tally.HistogramConfig{Kind: tally.Explicit},
			Throughput: tally.HistogramConfig{Kind: tally.Explicit},
		},
		Logs: defaultLogsConfig(),
	}
}

// Unmarshal decodes the configuration. [Config.Validate] checks the values.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if err := checkKeys(conf); err != nil {
		return err
	}
	if err := conf.Unmarshal(c); err != nil {
		return cmp.Or(explain(conf), err)
	}
	if conf.IsSet("allowed_uids") && c.AllowedUIDs == nil { // an environment variable that isn't set allows nobody
		c.AllowedUIDs = []int64{}
	}
	return nil
}

// checkKeys checks what the decoder accepts, although it isn't what was meant.
func checkKeys(conf *confmap.Conf) error {
	var errs faults
	for _, of := range [][2]string{
		{semconv.TransferDuration.Name, "duration"},
		{semconv.TransferPostDuration.Name, "duration"},
		{semconv.TransferSize.Name, "size"},
		{semconv.TransferThroughput.Name, "throughput"},
	} {
		if conf.IsSet("metrics::" + of[0]) {
			errs.add("metrics::%s: set histograms::%s::kind instead: none disables it", of[0], of[1])
		}
	}
	ids, _ := conf.Get("allowed_uids").([]any)
	for _, id := range ids {
		switch f, ok := id.(float64); {
		case id == nil: // would be 0, which is root
			errs.add("allowed_uids: null"+noUser, maxUID)
		case ok && f != math.Trunc(f):
			errs.add("allowed_uids: %v"+noUser, f, maxUID)
		}
	}
	return errors.Join(errs...)
}

// ownAttributes are the attributes of Resource that the receiver itself sets: the host of
// the agents, the service of agents whose environment doesn't name one, and the pod of the
// agents in Directories.
var ownAttributes = []string{semconv.HostName, semconv.ServiceName, semconv.K8SPodUID}

// others returns the attributes of Resource without [ownAttributes].
func (c *Config) others() map[string]string {
	rest := maps.Clone(c.Resource)
	for _, key := range ownAttributes {
		delete(rest, key)
	}
	return rest
}

// engine returns the configuration of the engine, which discovers and drains rings.
func (c *Config) engine(report func(notice.Notice)) engine.Config {
	cfg := engine.Config{
		Directories: c.Directories,
		PodUID:      c.Resource[semconv.K8SPodUID],
		IdentifyBy:  c.IdentifyBy,
		Resource:    c.others(),
		Include:     c.Include,
		Observe:     c.Mode == ringbuf.Observe,
		StaleAfter:  c.StaleAfter,
		Tally:       c.Histograms,
		Stores:      true,
		Report:      report,
	}
	for _, id := range c.AllowedUIDs {
		cfg.AllowedUIDs = append(cfg.AllowedUIDs, uint32(id))
	}
	if p := c.Discovery.Processes.Get(); p != nil {
		cfg.Processes = &engine.Processes{
			Interval: p.Interval, EnvAttributes: p.EnvAttributes, Attributes: p.OTelResourceAttributes,
		}
	}
	if k := c.Discovery.Kubelet.Get(); k != nil {
		cfg.Kubelet = &engine.Kubelet{Pods: k.Path}
	}
	return cfg
}
