// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		err := CheckPatterns("exclude", []string{"*", pattern})
		if why == "" && err != nil || why != "" && (err == nil || !strings.Contains(err.Error(), why)) {
			t.Errorf("%q: error is %v, want %q", pattern, err, why)
		}
		matched := false
		for _, name := range names {
			matched = matched || MatchesAny([]string{pattern}, name)
		}
		if matched != (why == "") {
			t.Errorf("%q matches some name: %v", pattern, matched)
		}
	}
}
