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

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/must"
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

// The table in README.md and all-keys.yaml are generated from config.schema.yaml.
func TestSchemaHasEveryKeyWithItsDefault(t *testing.T) {
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
			t.Errorf("config.schema.yaml has no %s", key)
		}
	}
	got.AllowedUIDs, got.StorageID, got.Resource = nil, nil, nil // examples
	got.Histograms.Duration.Bounds, got.Histograms.Size.Bounds, got.Histograms.Throughput.Bounds = nil, nil, nil

	want := createDefaultConfig()
	want.Directories = []string{"/tmp"}
	want.Exclude = []string{}
	want.Discovery.Processes.GetOrInsertDefault()
	want.Discovery.Kubelet.GetOrInsertDefault()
	if d := same(want, got); d != "" {
		t.Errorf("(-defaults +config.schema.yaml)\n%s", d)
	}
}

func TestKeysAreDecoded(t *testing.T) {
	storage := component.MustNewIDWithName("file_storage", "rings")
	for yaml, change := range map[string]func(*Config){
		"timeout: 0":                                  func(*Config) {},
		"timeout: 5s":                                 func(c *Config) { c.Timeout = 5 * time.Second },
		"mode: observe":                               func(c *Config) { c.Mode = ringbuf.Observe },
		"max_rings: 1e3":                              func(c *Config) { c.MaxRings = 1000 },
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
		"logs: {slow_transfer: 20ms, min_throughput: 1e9, errors: false, rate: 0.5}": func(c *Config) {
			c.Logs = LogsConfig{SlowTransfer: 20 * time.Millisecond, MinThroughput: 1e9, Rate: 0.5}
		},
		"logs: {slow_transfer: 0s, min_throughput: 0}": func(c *Config) { c.Logs.SlowTransfer, c.Logs.MinThroughput = 0, 0 },
		"logs: {slow_transfer: 1us}":                   func(c *Config) { c.Logs.SlowTransfer = time.Microsecond },
		"metrics: {nixl.events: {enabled: true}}":      func(c *Config) { c.Metrics.NixlEvents.Enabled = true },
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
discovery: {processes: {interval: 1s, env_attributes: {RANK: nixl.rank}, otel_resource_attributes: [team]}, kubelet: {path: /pods, volumes: [shm]}}
identify_by: [pod, rank]
resource: {host.name: node-7, service.name: kv, k8s.pod.uid: uid-1, k8s.cluster.name: east}
include: [a]
exclude: [b]
run_interval: 20ms
mode: observe
allowed_uids: [0, 4294967294]
max_rings: 12
stale_after: 1h
histograms: {duration: {bounds: [1]}, size: {kind: exponential}, throughput: {kind: none}}
`)
	must.OK(t, err)
	want := engine.Config{
		Directories: []string{"/run/a"},
		Processes:   &engine.Processes{Interval: time.Second, EnvAttributes: map[string]string{"RANK": "nixl.rank"}, Attributes: []string{"team"}},
		Kubelet:     &engine.Kubelet{Pods: "/pods", Volumes: []string{"shm"}},
		PodUID:      "uid-1", IdentifyBy: []string{"pod", "rank"}, Resource: map[string]string{"k8s.cluster.name": "east"},
		Include: []string{"a"}, Exclude: []string{"b"}, Observe: true, RunInterval: 20 * time.Millisecond,
		AllowedUIDs: []uint32{0, 4294967294}, MaxRings: 12, StaleAfter: time.Hour, Stores: true,
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
		"mode: peek":         `unknown mode "peek": use consume or observe`,
		"directory: /run":    "directory",
		"run_interval: fast": "run_interval",
		"metrics: {nixl.nonsense: {enabled: false}}": "nixl.nonsense",
		"allowed_uids: [root]":                       "allowed_uids",
	} {
		if _, err := parse(t, yaml); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want one with %s", yaml, err, want)
		}
	}
}

func TestErrorsNameKeyAndValueAndSuggestAnother(t *testing.T) {
	var attributes []string
	for i := range 65 {
		attributes = append(attributes, fmt.Sprintf("a%d: b%d", i, i))
	}
	many, long := strings.Join(attributes, ", "), strings.Repeat("a", 257)
	const nobody, noUser = "allowed_uids: an empty list allows nobody: list the agents' user IDs, such as [1000], or remove the key to allow everyone",
		" is not a user ID: it must be from 0 to 4294967294"
	for yaml, want := range map[string]string{
		"allowed_uids: []":                 nobody,
		"allowed_uids:":                    nobody,                              // a variable that isn't set
		"allowed_uids: [1000, 4294967296]": "allowed_uids: 4294967296" + noUser, // would be root
		"allowed_uids: [4294967295]":       "allowed_uids: 4294967295" + noUser,
		"allowed_uids: [1000, null]":       "allowed_uids: null" + noUser, // a variable that isn't set; would be root
		"allowed_uids: [1.5]":              "allowed_uids: 1.5" + noUser,
		"allowed_uids: [-1]":               "allowed_uids: -1" + noUser,

		"max_rings: 0":                                     "max_rings: 0 must be 1 or more",
		"{mode: observe, storage: a}":                      "storage: mode observe has no positions to store: set mode: consume, or remove storage",
		"directories: ['']":                                "directories: a path is empty: write a path, such as /run/nixl",
		"directories: [/run/a, /run/../run/a/]":            "directories: /run/../run/a/ is listed twice",
		"discovery: true":                                  "discovery: true is not a map: use {processes: {}}, for example",
		"discovery: {processes: {env_attributes: [RANK]}}": "discovery::processes::env_attributes: [RANK] is not a map: use {RANK: nixl.local_rank}, for example",
		"resource: [a]":                                    "resource: [a] is not a map: use {k8s.cluster.name: east}, for example",
		"logs: {slow_transfer: 500ns}":                     "logs: slow_transfer: 500ns is too short: use 0s for no limit, or at least 1µs, such as 1s",
		"logs: {min_throughput: -1}":                       "logs: min_throughput: -1 is not a throughput: use 0 for no limit, or bytes per second, such as 1e9",
		"logs: {rate: 0}":                                  "logs: rate: 0 is not a rate: use records per second, more than 0, such as 10",

		"run_interval: 100":       "run_interval: 100ns is too short: use that of the agents, at least 1ms, such as 100ms",
		"run_interval: 0":         "run_interval: 0s is too short: use that of the agents, at least 1ms, such as 100ms",
		"run_interval: 100ns":     "run_interval: 100ns is too short: use that of the agents, at least 1ms, such as 100ms",
		"collection_interval: 0s": "collection_interval: 0s is too short: use at least 1ms, such as 10s",
		"initial_delay: -1s":      "initial_delay: -1s is negative: use 0s to export at once, or a delay such as 1s",
		"timeout: -1s":            "timeout: -1s is too short: use 0s for no limit, or at least 1ms, such as 5s",
		"timeout: 1ns":            "timeout: 1ns is too short: use 0s for no limit, or at least 1ms, such as 5s",
		"stale_after: 1ns": "stale_after: 1ns is too short: use at least 2s, the interval between two checks of the files; " +
			"better longer than an agent takes to restart, such as 5m",

		"directories: []": "directories: none: list at least one, such as /run/nixl, or set discovery::processes or discovery::kubelet",
		"metrics: {nixl.transfer.duration: {enabled: false}}":                                            "metrics::nixl.transfer.duration: set histograms::duration::kind instead: none disables it",
		"metrics: {nixl.transfer.post.duration: {enabled: false}}":                                       "metrics::nixl.transfer.post.duration: set histograms::duration::kind instead: none disables it",
		"resource: {host.name: }":                                                                        "resource::host.name: empty: set the environment variable that it comes from, or remove the key",
		"resource: {k8s.pod.uid: ''}":                                                                    "resource::k8s.pod.uid: empty: set the environment variable that it comes from, or remove the key",
		"directories: [/run/*]":                                                                          `directories: "/run/*" is a pattern: list each directory, and use include for patterns of files and subdirectories`,
		"directories: [rel/dir]":                                                                         `directories: "rel/dir" must be an absolute path, such as /run/nixl`,
		"directories: [~/rings]":                                                                         `directories: "~/rings" must be an absolute path, such as /run/nixl`,
		"discovery: {processes: {interval: 1ms}}":                                                        "discovery::processes::interval: 1ms is too short: use at least 100ms, such as 5s",
		`discovery: {processes: {env_attributes: {"A=B": x}}}`:                                           `discovery::processes::env_attributes: "A=B" is not the name of an environment variable`,
		"discovery: {processes: {env_attributes: {A: ''}}}":                                              "discovery::processes::env_attributes: A has no attribute: name one, such as nixl.local_rank",
		"discovery: {processes: {env_attributes: {A: host.name}}}":                                       `discovery::processes::env_attributes: A: "host.name": the receiver itself sets an attribute with the Prometheus label host_name: remove it, or use another name`,
		"discovery: {processes: {env_attributes: {A: le}}}":                                              `discovery::processes::env_attributes: A: Prometheus can't carry the attribute "le" as a label: use another name, such as k8s.cluster.name`,
		"discovery: {processes: {env_attributes: {A: error.type}}}":                                      `discovery::processes::env_attributes: A: "error.type": the receiver itself sets an attribute with the Prometheus label error_type: remove it, or use another name`,
		`discovery: {processes: {otel_resource_attributes: ["["]}}`:                                      `discovery::processes::otel_resource_attributes: "[" is not a valid pattern: list keys or patterns, such as service.*`,
		"discovery: {processes: {env_attributes: {RANK: nixl.local_rank, LOCAL_RANK: nixl.local_rank}}}": "discovery::processes::env_attributes: LOCAL_RANK and RANK both set nixl.local_rank: keep one of them",
		"discovery: {kubelet: {path: pods}}":                                                             `discovery::kubelet::path: "pods" must be an absolute path, such as /var/lib/kubelet/pods`,
		"discovery: {kubelet: {volumes: []}}":                                                            `discovery::kubelet::volumes: an empty list selects no volume: use ["*"] or remove the key to select all volumes`,
		"identify_by: []":                                                                                "identify_by: list at least one of agent, pod, container and rank",
		"identify_by: [name]":                                                                            `identify_by: "name" must be agent, pod, container or rank`,
		"resource: {service.instance.id: a}":                                                             `resource: "service.instance.id": the receiver itself sets an attribute with the Prometheus label service_instance_id: remove it, or use another name`,
		"resource: {error_type: a}":                                                                      `resource: "error_type": the receiver itself sets an attribute with the Prometheus label error_type: remove it, or use another name`,
		"resource: {agent.name: a}":                                                                      `resource: "agent.name": the receiver itself sets an attribute with the Prometheus label agent_name: remove it, or use another name`,
		"resource: {otel.scope.name: a}":                                                                 `resource: "otel.scope.name": the receiver itself sets an attribute with the Prometheus label otel_scope_name: remove it, or use another name`,
		"resource: {job: a}":                                                                             `resource: Prometheus can't carry the attribute "job" as a label: use another name, such as k8s.cluster.name`,
		"resource: {7.a: b}":                                                                             `resource: Prometheus can't carry the attribute "7.a" as a label: use another name, such as k8s.cluster.name`,
		"resource: {a.b: c, a_b: d}":                                                                     "resource: a.b and a_b are the same label in Prometheus: keep one of them",
		`resource: {team: "` + long + `"}`:                                                               `resource: team: the value "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" must be UTF-8 of at most 256 bytes`,
		"resource: {" + many + "}":                                                                       "resource: 65 attributes with 370 bytes are too many: use at most 64 attributes with 4096 bytes",
		"{resource: {team: a}, discovery: {processes: {env_attributes: {TEAM: team}}}}":                  "resource: team: TEAM in discovery::processes::env_attributes also sets this attribute: keep one of them",

		"include: []":         `include: an empty list selects no ring: use ["*"] or remove the key to select all rings`,
		`include: [""]`:       `include: "" matches nothing: patterns match names relative to the directory, such as *, decode-* or pod/**`,
		`include: ["/abs/*"]`: `include: "/abs/*" matches nothing: patterns match names relative to the directory, such as *, decode-* or pod/**`,
		`exclude: ["../x"]`:   `exclude: "../x" matches nothing: patterns match names relative to the directory, such as *, decode-* or pod/**`,
		`exclude: ["pod/"]`:   `exclude: "pod/" matches nothing: patterns match names relative to the directory, such as *, decode-* or pod/**`,

		`include: ["[a"]`: `include: "[a" is not a valid pattern`,
		"histograms: {size: {bounds: [1024, 512]}}": "histograms: size: bounds must be finite, not negative, and increasing: bound 2 is 512",
		"histograms: {duration: {kind: linear}}":    `histograms: duration: kind is "linear": use explicit, exponential or none`,
		"histograms: {size: {kind: exponential, bounds: [1024]}}": "histograms: size: bounds [1024] need kind: explicit, but kind is exponential: " +
			"remove bounds, or set kind: explicit",
	} {
		_, err := parse(t, yaml)
		if d := cmp.Diff(want, fmt.Sprint(err)); d != "" {
			t.Errorf("%s: error (-want +got)\n%s", yaml, d)
		}
	}
}

func TestAllErrorsAreReportedAtOnce(t *testing.T) {
	const yaml = "{run_interval: 0s, directories: [a], include: [''], exclude: [/b, /c], max_rings: -1, timeout: -1s, stale_after: 1s}"
	_, err := parse(t, yaml)
	if lines := strings.Split(fmt.Sprint(err), "\n"); len(lines) != 8 {
		t.Errorf("%d errors, want 8:\n%v", len(lines), err)
	}
}
