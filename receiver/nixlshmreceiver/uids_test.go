// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/confmap"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

// parse returns the configuration as the Collector reads it, or the error with which
// the Collector rejects it.
func parse(t *testing.T, yaml string) (*Config, error) {
	t.Helper()
	read, err := confmap.NewRetrievedFromYAML([]byte(yaml))
	must.OK(t, err)
	conf, err := read.AsConf()
	must.OK(t, err)
	cfg := createDefaultConfig()
	if !conf.IsSet("discovery") {
		cfg.Directories = []string{"/run/nixl"}
	}
	if err := conf.Unmarshal(cfg); err != nil {
		// The decoder adds the position of the receiver's section.
		text, ours := strings.CutPrefix(err.Error(), "decoding failed due to the following error(s):\n\n'' ")
		if !ours {
			t.Errorf("the error is the decoder's: %v", err)
		}
		return nil, errors.New(text)
	}
	return cfg, confmap.Validate(cfg)
}

// An invalid user ID must not be converted to a valid one, such as root's.
func TestInvalidUserIDsAreRejected(t *testing.T) {
	for _, id := range []string{
		"4294967296", "4294967295", "-1", "-4294967296", "1.5", "8589934592", "18446744073709551616", "-9223372036854775808", "1e+30",
		`"root"`, `"0"`, "true", "null",
	} {
		want := "allowed_uids: " + id + " is not a user ID: it must be from 0 to 4294967294"
		for _, yaml := range []string{"allowed_uids: [" + id + "]", "allowed_uids: [1000, " + id + "]"} {
			cfg, err := parse(t, yaml)
			if id == "18446744073709551616" { // as YAML decodes it
				want = strings.Replace(want, id, "1.8446744073709552e+19", 1)
			}
			if err == nil || err.Error() != want {
				t.Errorf("%s: error is %v, want %s; config is %v", yaml, err, want, cfg)
			}
		}
	}
	cfg, err := parse(t, "allowed_uids: [0, 1000, 4294967294]")
	must.OK(t, err)
	if d := cmp.Diff([]uint32{0, 1000, 4294967294}, cfg.AllowedUIDs); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	// A configuration that a Go program makes is checked, too.
	cfg.AllowedUIDs = []uint32{4294967295}
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "allowed_uids: 4294967295 is not a user ID") {
		t.Errorf("error is %v", err)
	}
}

// The list may come from an environment variable that isn't set.
func TestEmptyListOfUserIDsIsRejected(t *testing.T) {
	for _, yaml := range []string{"allowed_uids: []", "allowed_uids:"} {
		if _, err := parse(t, yaml); err == nil || !strings.HasPrefix(err.Error(), "allowed_uids: an empty list allows nobody: ") {
			t.Errorf("%s: error is %v", yaml, err)
		}
	}
	cfg := createDefaultConfig()
	cfg.AllowedUIDs = []uint32{}
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "allows nobody") {
		t.Errorf("error is %v", err)
	}
}

func TestErrorsNameKeyAndValueAndSuggestAnother(t *testing.T) {
	var attributes []string
	for i := range 65 {
		attributes = append(attributes, fmt.Sprintf("a%d: b%d", i, i))
	}
	many, long := strings.Join(attributes, ", "), strings.Repeat("a", 257)
	const nobody = "allowed_uids: an empty list allows nobody: list the agents' user IDs, such as [1000], or remove the key to allow everyone"
	for yaml, want := range map[string]string{
		"allowed_uids: 4294967296": "allowed_uids: 4294967296 is not a list: use [1000], for example",
		"allowed_uids: []":         nobody,
		"allowed_uids:":            nobody,

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
		`include: ["/abs/*"]`: `include: "/abs/*" begins with a slash: patterns match names relative to the directory, such as *, decode-* or pod/**`,
		`exclude: ["../x"]`:   `exclude: "../x" contains ".", ".." or an empty path element: patterns match names relative to the directory, such as *, decode-* or pod/**`,
		`exclude: ["pod/"]`:   `exclude: "pod/" ends with a slash: patterns match names relative to the directory, such as *, decode-* or pod/**`,

		"histograms: {duration: {kind: linear}}": `histograms: duration: kind is "linear": use explicit, exponential or none`,
		"histograms: {size: {kind: exponential, bounds: [1024]}}": "histograms: size: bounds [1024] need kind: explicit, but kind is exponential: " +
			"remove bounds, or set kind: explicit",
	} {
		if _, err := parse(t, yaml); err == nil || err.Error() != want {
			t.Errorf("%s: error is\n%v, want\n%s", yaml, err, want)
		}
	}
}

func TestAllErrorsAreReportedAtOnce(t *testing.T) {
	for yaml, want := range map[string]int{
		"{run_interval: 0s, directories: [a], include: [''], exclude: [/b, /c], max_rings: -1, timeout: -1s, stale_after: 1s}": 8,
	} {
		if _, err := parse(t, yaml); err == nil || len(strings.Split(err.Error(), "\n")) != want {
			t.Errorf("%s: error is %v", yaml, err)
		}
	}
}

func TestOtherSpellingsOfValuesAreAccepted(t *testing.T) {
	for yaml, right := range map[string]func(c *Config) bool{
		"timeout: 0":               func(c *Config) bool { return c.Timeout == 0 },
		"initial_delay: 0":         func(c *Config) bool { return c.InitialDelay == 0 },
		"stale_after: 2s":          func(c *Config) bool { return c.StaleAfter == 2*time.Second },
		"max_rings: 1e3":           func(c *Config) bool { return c.MaxRings == 1000 },
		"directories: /run/nixl":   func(c *Config) bool { return cmp.Equal(c.Directories, []string{"/run/nixl"}) },
		"include: 'a,b'":           func(c *Config) bool { return cmp.Equal(c.Include, []string{"a", "b"}) },
		`include: ["{a,/b}/c"]`:    func(c *Config) bool { return len(c.Include) == 1 },
		`include: ["..a", "b/.c"]`: func(c *Config) bool { return len(c.Include) == 2 },
		"exclude: []":              func(c *Config) bool { return len(c.Exclude) == 0 },
		"include: null":            func(c *Config) bool { return cmp.Equal(c.Include, []string{"*"}) },
		"storage: null":            func(c *Config) bool { return c.StorageID == nil },
		"histograms: {size: null}": func(c *Config) bool { return c.Histograms.Size.Kind == "explicit" },
	} {
		if cfg, err := parse(t, yaml); err != nil || !right(cfg) {
			t.Errorf("%s: %v, config is %+v", yaml, err, cfg)
		}
	}
}
