// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/semconv"
)

func TestInvalidDiscoveryThroughProcessesIsRejected(t *testing.T) {
	const env, attributes = "discovery::processes::env_attributes: ", "discovery::processes::otel_resource_attributes: "
	for _, tc := range []struct {
		change func(p *Processes)
		want   []string
	}{
		{func(*Processes) {}, nil},
		{func(p *Processes) { p.Interval = minSearch }, nil},
		{func(p *Processes) { p.Interval = minSearch - 1 }, []string{"discovery::processes::interval: 99.999999ms is too short: use at least 100ms, such as 5s"}},
		{func(p *Processes) {
			p.EnvAttributes = map[string]string{"RANK": semconv.LocalRank, "NAME": semconv.ServiceName}
		}, nil},
		{func(p *Processes) { p.EnvAttributes = map[string]string{"A": "x.y", "B": "x_y", "C": "z"} }, []string{env + "A and B both set x_y: keep one of them"}},
		{
			func(p *Processes) {
				p.EnvAttributes = map[string]string{"": "a", "A=B": "b", "C": "", "D": semconv.HostName}
			},
			[]string{
				env + `"" is not the name of an environment variable`, env + `"A=B" is not the name of an environment variable`,
				env + "C has no attribute: name one, such as nixl.local_rank",
				env + `D: "host.name": the receiver itself sets an attribute with the Prometheus label host_name: remove it, or use another name`,
			},
		},
		{func(p *Processes) { p.Attributes = []string{"team", "", "["} }, []string{
			attributes + `"" is not a valid pattern: list keys or patterns, such as service.*`, attributes + `"[" is not a valid pattern: list keys or patterns, such as service.*`,
		}},
	} {
		p := Processes{Interval: DefaultInterval, Attributes: DefaultAttributes}
		tc.change(&p)
		var got []string
		if err := p.Check(); err != nil {
			got = slices.Collect(strings.SplitSeq(err.Error(), "\n"))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%+v: %s", p, diff)
		}
	}
}

func TestCheckPatternsRejectsPatternsThatMatchNothing(t *testing.T) {
	names := []string{"x", "abs", "pod/x", "pod", ".x", "..x", "pod/.x", "x."}
	for pattern, why := range map[string]string{
		"": "matches nothing", "/abs": "matches nothing", "/**": "matches nothing", "/{abs,x}": "matches nothing", "pod/": "matches nothing",
		"../x": "matches nothing", "./x": "matches nothing", "[": "is not a valid pattern",
		"*": "", "**": "", "..x": "", "x.": "", "pod/.*": "", "{pod,/abs}/x": "", "po{d/x,d/.x}": "",
	} {
		err := CheckPatterns("include", []string{"*", pattern})
		if why == "" && err != nil || why != "" && (err == nil || !strings.Contains(err.Error(), why)) {
			t.Errorf("%q: error is %v, want %q", pattern, err, why)
		}
		matched := false
		for _, name := range names {
			matched = matched || matchesAny([]string{pattern}, name)
		}
		if matched != (why == "") {
			t.Errorf("%q matches some name: %v", pattern, matched)
		}
	}
}

// Each error names its key.
func TestInvalidKeysAreRejected(t *testing.T) {
	long := strings.Repeat("x", process.MaxAttribute)
	many := make(Resource)
	for i := range process.MaxAttributes + 1 {
		many[fmt.Sprint("key", i)] = ""
	}
	large := make(Resource)
	for i := range process.MaxAttributeBytes / len(long) {
		large[fmt.Sprint("k", i)] = long
	}
	kubelet := func(path string) error { return (&Kubelet{Pods: path}).Check() }
	env := map[string]string{"RANK": "a.rank"}
	for _, tt := range []struct {
		got  error
		want string
	}{
		{CheckDirectories([]string{"/a", "/b", "a"}), "<nil>"},
		{CheckDirectories([]string{"/a", ""}), "directories: a path is empty"},
		{CheckDirectories([]string{"/a", "/b", "/b/../a"}), "directories: /b/../a is listed twice"},
		{kubelet("/pods"), "<nil>"},
		{kubelet("pods"), `discovery::kubelet::path: "pods" must be an absolute path`},
		{Resource{"team": long, "k8s.container.name": ""}.Check(env), "<nil>"},
		{Resource{"host.name": "a"}.Check(nil), `resource: "host.name": the receiver itself sets`},
		{Resource{"le": "a"}.Check(nil), `resource: Prometheus can't carry the attribute "le"`},
		{Resource{"a" + long: "a"}.Check(nil), "resource: Prometheus can't carry the attribute"},
		{Resource{"a.b": "1", "a_b": "2"}.Check(nil), "resource: a.b and a_b are the same label"},
		{Resource{"a_rank": "1"}.Check(env), "resource: a_rank: RANK in discovery::processes::env_attributes also sets"},
		{Resource{"team": long + "x"}.Check(nil), "resource: team: the value "},
		{Resource{"team": "\xff"}.Check(nil), "resource: team: the value "},
		{many.Check(nil), "resource: 65 attributes with"},
		{large.Check(nil), "resource: 16 attributes with 4134 bytes are too many"},
	} {
		if got := fmt.Sprint(tt.got); !strings.HasPrefix(got, tt.want) || strings.Contains(got, "\n") {
			t.Errorf("error %q, want %q", got, tt.want)
		}
	}
}

func TestStateHasAnErrorIfNothingCanBeRead(t *testing.T) {
	bad := map[string]Refusal{"/b": {Err: errors.New("second")}, "/a": {Err: errors.New("first")}}
	for want, s := range map[string]State{
		"<nil>": {Open: 1, Refused: bad},
		"none of 2 rings can be opened; the first: first": {Refused: bad},
		"none of 1 rings can be opened; the first: only":  {Refused: map[string]Refusal{"/c": {Err: errors.New("only")}}},
		"telemetry directory can't be read: no disk":      {Open: 1, Missing: []error{errors.New("no disk")}},
	} {
		if got := fmt.Sprint(s.Err()); got != want {
			t.Errorf("error %q, want %q", got, want)
		}
	}
	if err := (State{}).Err(); err != nil {
		t.Errorf("error %v without rings", err)
	}
}
