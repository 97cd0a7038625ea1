// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// load decodes the configuration of the receiver nixl_shm/name in
// testdata/config.yaml. It doesn't validate the configuration.
func load(t *testing.T, name string) (*Config, error) {
	t.Helper()
	all, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	must.OK(t, err)
	id := component.NewIDWithName(metadata.Type, name).String()
	if !all.IsSet(id) {
		t.Fatalf("testdata/config.yaml has no %s", id)
	}
	section, err := all.Sub(id)
	must.OK(t, err)
	cfg := NewFactory().CreateDefaultConfig().(*Config) //nolint:errcheck // or the test panics
	return cfg, section.Unmarshal(cfg)
}

// same compares two configurations without the fields that mdatagen adds.
func same(want, got *Config) string {
	return cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true }),
		cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".enabledSetByUser" }, cmp.Ignore()))
}

func TestConfigurationHasDefaults(t *testing.T) {
	got, err := load(t, "")
	must.OK(t, err)
	if err := confmap.Validate(got); err != nil {
		t.Errorf("the defaults are rejected: %v", err)
	}
	want := createDefaultConfig()
	want.Directories = []string{"/run/nixl"}
	want.Include = []string{"*"}
	want.RunInterval = 100 * time.Millisecond
	want.CollectionInterval = 10 * time.Second
	want.InitialDelay = time.Second
	want.Timeout = 0
	want.Mode = ringbuf.Consume
	want.AllowedUIDs = nil
	want.MaxRings = 4096
	want.StaleAfter = 5 * time.Minute
	want.Histograms = HistogramsConfig{
		Duration:   HistogramConfig{Kind: tally.Explicit},
		Size:       HistogramConfig{Kind: tally.Explicit},
		Throughput: HistogramConfig{Kind: tally.Explicit},
	}
	want.Logs = LogsConfig{SlowTransfer: time.Second, Errors: true, Rate: 10}
	want.StorageID = nil
	if d := same(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if err := componenttest.CheckConfigStruct(got); err != nil {
		t.Error(err)
	}
}

func TestEveryKeyIsDecoded(t *testing.T) {
	got, err := load(t, "all")
	must.OK(t, err)
	if err := confmap.Validate(got); err != nil {
		t.Error(err)
	}
	want := createDefaultConfig()
	want.Directories = []string{"/run/nixl", "/dev/shm/nixl"}
	want.Include = []string{"**", "decode-*"}
	want.Exclude = []string{"*.log"}
	want.RunInterval = 20 * time.Millisecond
	want.CollectionInterval = 30 * time.Second
	want.InitialDelay = 3 * time.Second
	want.Timeout = 5 * time.Second
	want.Mode = ringbuf.Observe
	want.Resource = map[string]string{"host.name": "node-7", "k8s.cluster.name": "east", "team": "a"}
	want.AllowedUIDs = []uint32{0, 1000}
	want.MaxRings = 12
	want.StaleAfter = time.Hour
	want.Histograms.Duration.Bounds = []float64{0.001, 0.01, 0.1}
	want.Histograms.Size = HistogramConfig{Kind: tally.Exponential}
	want.Histograms.Throughput.Bounds = []float64{1e8, 1e9, 1e10}
	want.Logs = LogsConfig{SlowTransfer: 20 * time.Millisecond, MinThroughput: 1e9, Rate: 0.5}
	want.Metrics.NixlEvents.Enabled = false
	want.ResourceAttributes.NixlTelemetryPath.Enabled = true
	if d := same(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestKeyAloneEnablesDiscovery(t *testing.T) {
	got, err := load(t, "discovery")
	must.OK(t, err)
	if err := confmap.Validate(got); err != nil {
		t.Error(err)
	}
	want := createDefaultConfig()
	want.Directories = nil // not the Collector's own
	want.Discovery = DiscoveryConfig{Processes: defaultProcesses(), Kubelet: defaultKubelet()}
	want.IdentifyBy = []string{"pod", "rank"}
	want.Resource = map[string]string{"service.name": "inference"}
	if d := same(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestEveryKeyOfDiscoveryIsDecoded(t *testing.T) {
	got, err := load(t, "discovery_all")
	must.OK(t, err)
	if err := confmap.Validate(got); err != nil {
		t.Error(err)
	}
	want := createDefaultConfig()
	want.Directories = []string{"/run/nixl"}
	want.Discovery = DiscoveryConfig{
		Processes: &ProcessesConfig{Interval: time.Second, EnvAttributes: map[string]string{"RANK": "nixl.rank"}, OTelResourceAttributes: []string{"team", "service.*"}},
		Kubelet:   &KubeletConfig{Path: "/data/kubelet/pods", Volumes: []string{"shm"}},
	}
	if d := same(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestStorageNamesAnExtension(t *testing.T) {
	got, err := load(t, "storage")
	must.OK(t, err)
	if want := component.MustNewIDWithName("file_storage", "rings"); got.StorageID == nil || *got.StorageID != want {
		t.Errorf("storage is %v, want %v", got.StorageID, want)
	}
}

func TestUnknownKeysAndWrongTypesAreRejected(t *testing.T) {
	for name, want := range map[string]string{
		"unknown_mode":       `unknown mode "peek": use consume or observe`,
		"unknown_key":        "directory",
		"unknown_metric":     "nixl.nonsense",
		"number_as_interval": "run_interval",
	} {
		if _, err := load(t, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want one with %s", name, err, want)
		}
	}
}

func TestInvalidValuesAreRejected(t *testing.T) {
	for name, want := range map[string][]string{
		"no_directory":          {"directories: none: list at least one"},
		"nameless_directory":    {"directories: a path is empty"},
		"directory_twice":       {"directories: /run/../run/nixl/ is listed twice"},
		"broken_include":        {`include: "[a" is not a valid pattern`},
		"broken_exclude":        {`exclude: "{a" is not a valid pattern`},
		"no_rings":              {"max_rings: 0 must be 1 or more"},
		"unknown_kind":          {`histograms: duration: kind is "linear": use explicit, exponential or none`},
		"falling_bounds":        {"histograms: size: bounds must be finite, not negative, and increasing: bound 2 is 512"},
		"negative_bound":        {"histograms: duration: bounds must be finite, not negative, and increasing: bound 1 is -1"},
		"short_slow_transfer":   {"logs: slow_transfer: 500ns is too short", "at least 1µs"},
		"negative_throughput":   {"logs: min_throughput: -1 is not a throughput"},
		"no_logs":               {"logs: rate: 0 is not a rate"},
		"observer_with_storage": {"storage: mode observe has no positions to store"},
		"two_faults":            {"max_rings: -1 must be 1 or more", "stale_after: -1s is too short"},
	} {
		cfg, err := load(t, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err = confmap.Validate(cfg); err == nil || !containsAll(err.Error(), want) {
			t.Errorf("%s: error is %v, want one with %s", name, err, strings.Join(want, ", "))
		}
	}
}
