// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// parse returns the configuration as the Collector reads it, or the error with which
// the Collector rejects it.
func parse(t *testing.T, yaml string) (*Config, error) {
	t.Helper()
	conf := decode(t, yaml)
	cfg := createDefaultConfig()
	if !conf.IsSet("discovery") {
		cfg.Directories = []string{"/run/nixl"}
	}
	if err := conf.Unmarshal(cfg); err != nil {
		// The decoder adds the position of the receiver's section.
		return nil, errors.New(strings.TrimPrefix(err.Error(), "decoding failed due to the following error(s):\n\n'' "))
	}
	return cfg, confmap.Validate(cfg)
}

func decode(t *testing.T, yaml string) *confmap.Conf {
	t.Helper()
	read, err := confmap.NewRetrievedFromYAML([]byte(yaml))
	must.OK(t, err)
	conf, err := read.AsConf()
	must.OK(t, err)
	return conf
}

// same compares two configurations without the fields that mdatagen adds.
func same(want, got *Config) string {
	return cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true }),
		cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".enabledSetByUser" }, cmp.Ignore()))
}

// schema is the part of JSON Schema that describes a key in config.schema.yaml.
type schema struct {
	Ref         string            `yaml:"$ref"`
	Defs        map[string]schema `yaml:"$defs"`
	Description string            `yaml:"description"`
	Default     yaml.Node         `yaml:"default"`
	Properties  yaml.Node         `yaml:"properties"` // in the order of the file
}

// rows returns the table of the keys below one.
func (s *schema) rows(t *testing.T, above string, defs map[string]schema) (table string) {
	t.Helper()
	for i := 0; i < len(s.Properties.Content); i += 2 {
		key := above + s.Properties.Content[i].Value
		var p schema
		must.OK(t, s.Properties.Content[i+1].Decode(&p))
		if p.Ref != "" {
			p.Properties = defs[strings.TrimPrefix(p.Ref, "#/$defs/")].Properties
		}
		value := ""
		if !p.Default.IsZero() {
			if p.Default.Kind != yaml.ScalarNode {
				p.Default.Style = yaml.FlowStyle
			}
			text, err := yaml.Marshal(&p.Default)
			must.OK(t, err)
			value = fmt.Sprintf("`%s` ", strings.TrimSpace(string(text)))
		}
		if p.Description != "" {
			table += fmt.Sprintf("| `%s` | %s| %s |\n", key, value, p.Description)
		}
		table += p.rows(t, key+"::", defs)
	}
	return table
}

// With -update, the test writes the table.
func TestKeyTableSaysWhatTheSchemaSays(t *testing.T) {
	const begin, end = "<!-- generated from config.schema.yaml by go test -update -->\n", "<!-- end of generated text -->\n"
	var s schema
	text, err := os.ReadFile("config.schema.yaml")
	must.OK(t, errors.Join(err, yaml.Unmarshal(text, &s)))
	want := "| key | default | |\n|---|---|---|\n" + s.rows(t, "", s.Defs)
	readme, err := os.ReadFile("README.md")
	must.OK(t, err)
	before, rest, began := strings.Cut(string(readme), begin)
	table, after, ended := strings.Cut(rest, end)
	if !began || !ended {
		t.Fatalf("README.md has no section between %q and %q", begin, end)
	}
	if *update {
		must.OK(t, os.WriteFile("README.md", []byte(before+begin+want+end+after), 0o644))
	} else if d := cmp.Diff(want, table); d != "" {
		t.Errorf("run go test -update (-config.schema.yaml +README.md)\n%s", d)
	}
}

// The keys of all-keys.yaml that are commented out count, too.
func TestAllKeysHasEveryKeyWithItsDefault(t *testing.T) {
	content, err := os.ReadFile("../../examples/collector/all-keys.yaml")
	must.OK(t, err)
	text := regexp.MustCompile(`\$\{env:\w+:-([^}]*)\}`).ReplaceAllString(string(content), "$1")
	text = regexp.MustCompile(`(?m)^( +)# (\w+:)( .*)?$`).ReplaceAllString(text, "$1$2$3") // with the keys that are commented out
	section, err := decode(t, text).Sub("receivers::nixl_shm")
	must.OK(t, err)
	got := new(Config)
	must.OK(t, section.Unmarshal(got))
	must.OK(t, confmap.Validate(got))

	all := confmap.New()
	must.OK(t, all.Marshal(got))
	documented := section.AllKeys()
	for _, key := range all.AllKeys() {
		if !slices.Contains(documented, key) && !strings.Contains(key, "::metrics_") {
			t.Errorf("all-keys.yaml has no %s", key)
		}
	}
	got.AllowedUIDs, got.StorageID, got.Resource = nil, nil, nil // examples
	got.Histograms.Duration.Bounds, got.Histograms.Size.Bounds, got.Histograms.Throughput.Bounds = nil, nil, nil

	want := createDefaultConfig()
	want.Directories = []string{"/tmp"}
	want.Discovery.Processes.GetOrInsertDefault()
	want.Discovery.Kubelet.GetOrInsertDefault()
	if d := same(want, got); d != "" {
		t.Errorf("(-defaults +all-keys.yaml)\n%s", d)
	}
}

func TestKeysAreDecoded(t *testing.T) {
	storage := component.MustNewIDWithName("file_storage", "rings")
	for yaml, change := range map[string]func(*Config){
		"timeout: 0":  func(*Config) {},
		"timeout: 5s": func(c *Config) { c.Timeout = 5 * time.Second },
		"{collection_interval: 1ms, initial_delay: 0s, timeout: 1ms}": func(c *Config) {
			c.CollectionInterval, c.InitialDelay, c.Timeout = time.Millisecond, 0, time.Millisecond
		},
		"mode: observe":                               func(c *Config) { c.Mode = ringbuf.Observe },
		"stale_after: 2s":                             func(c *Config) { c.StaleAfter = 2 * time.Second },
		"storage: file_storage/rings":                 func(c *Config) { c.StorageID = &storage },
		"storage: null":                               func(*Config) {},
		"allowed_uids: [0, 1000, 4294967294]":         func(c *Config) { c.AllowedUIDs = []int64{0, 1000, 4294967294} },
		"directories: /run/a":                         func(c *Config) { c.Directories = []string{"/run/a"} },
		"include: 'a,b'":                              func(c *Config) { c.Include = []string{"a", "b"} },
		`include: ["{a,/b}/c", "..a", "b/.c"]`:        func(c *Config) { c.Include = []string{"{a,/b}/c", "..a", "b/.c"} },
		"include: null":                               func(*Config) {},
		"resource: {team: a}":                         func(c *Config) { c.Resource = map[string]string{"team": "a"} },
		"histograms: {size: null}":                    func(*Config) {},
		"histograms: {size: {kind: exponential}}":     func(c *Config) { c.Histograms.Size.Kind = tally.Exponential },
		"histograms: {duration: {bounds: [1e-3, 1]}}": func(c *Config) { c.Histograms.Duration.Bounds = []float64{0.001, 1} },
		"logs: {slow_transfer: 20ms, errors: false, rate: 0.5}": func(c *Config) {
			c.Logs = LogsConfig{SlowTransfer: 20 * time.Millisecond, Rate: 0.5}
		},
		"logs: {slow_transfer: 0s}":               func(c *Config) { c.Logs.SlowTransfer = 0 },
		"logs: {slow_transfer: 1us}":              func(c *Config) { c.Logs.SlowTransfer = time.Microsecond },
		"metrics: {nixl.events: {enabled: true}}": func(c *Config) { c.Metrics.NixlEvents.Enabled = true },
		// The key alone enables discovery.
		"{discovery: {processes: }, directories: [/run/nixl]}": func(c *Config) { c.Discovery.Processes.GetOrInsertDefault() },
		"discovery: {kubelet: }": func(c *Config) {
			c.Directories = nil
			c.Discovery.Kubelet.GetOrInsertDefault()
		},
		"discovery: {processes: {env_attributes: {RANK: nixl.rank}}}": func(c *Config) { // not LOCAL_RANK
			c.Directories = nil
			c.Discovery.Processes.GetOrInsertDefault().EnvAttributes = map[string]string{"RANK": "nixl.rank"}
		},
	} {
		want := createDefaultConfig()
		want.Directories = []string{"/run/nixl"}
		change(want)
		got, err := parse(t, yaml)
		if err != nil {
			t.Errorf("%s: %v", yaml, err)
		} else if d := same(want, got); d != "" {
			t.Errorf("%s: (-want +got)\n%s", yaml, d)
		}
	}
}

func TestEngineHasTheConfiguration(t *testing.T) {
	cfg, err := parse(t, `
directories: [/run/a]
discovery: {processes: {interval: 1s, env_attributes: {RANK: nixl.rank}, otel_resource_attributes: [team]}, kubelet: {path: /pods}}
identify_by: [pod, rank]
resource: {host.name: node-7, service.name: kv, k8s.pod.uid: uid-1, k8s.cluster.name: east}
include: [a]
mode: observe
allowed_uids: [0, 4294967294]
stale_after: 1h
histograms: {duration: {bounds: [1]}, size: {kind: exponential}, throughput: {kind: none}}
`)
	must.OK(t, err)
	want := engine.Config{
		Directories: []string{"/run/a"},
		Processes:   &engine.Processes{Interval: time.Second, EnvAttributes: map[string]string{"RANK": "nixl.rank"}, Attributes: []string{"team"}},
		Kubelet:     &engine.Kubelet{Pods: "/pods"},
		PodUID:      "uid-1", IdentifyBy: []string{"pod", "rank"}, Resource: map[string]string{"k8s.cluster.name": "east"},
		Include: []string{"a"}, Observe: true,
		AllowedUIDs: []uint32{0, 4294967294}, StaleAfter: time.Hour, Stores: true,
		Tally: tally.Config{
			Duration:   tally.HistogramConfig{Kind: tally.Explicit, Bounds: []float64{1}},
			Size:       tally.HistogramConfig{Kind: tally.Exponential},
			Throughput: tally.HistogramConfig{Kind: tally.NoHistogram},
		},
	}
	if d := cmp.Diff(want, cfg.engine(nil)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestUnknownKeysAndWrongTypesAreRejected(t *testing.T) {
	for yaml, want := range map[string]string{
		"mode: peek":        `unknown mode "peek": use consume or observe`,
		"directory: /run":   "directory",
		"stale_after: fast": "stale_after",
		"metrics: {nixl.nonsense: {enabled: false}}": "nixl.nonsense",
		"allowed_uids: [root]":                       "allowed_uids",
	} {
		if _, err := parse(t, yaml); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want one with %s", yaml, err, want)
		}
	}
}

func TestErrorsNameKeyAndValueAndSuggestAnother(t *testing.T) {
	const file = "testdata/config_errors.txt"
	want, err := os.ReadFile(file)
	must.OK(t, err)
	var got strings.Builder
	for line := range strings.Lines(string(want)) {
		switch line[0] {
		case '\t': // an error
		case '#':
			got.WriteString(line)
		default:
			_, err := parse(t, line)
			fmt.Fprintf(&got, "%s\t%s\n", line, strings.ReplaceAll(fmt.Sprint(err), "\n", "\n\t"))
		}
	}
	if *update {
		must.OK(t, os.WriteFile(file, []byte(got.String()), 0o600))
	} else if d := cmp.Diff(string(want), got.String()); d != "" {
		t.Errorf("%s (-want +got)\n%s", file, d)
	}
}
