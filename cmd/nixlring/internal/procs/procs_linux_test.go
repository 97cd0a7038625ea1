// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package procs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs/procstest"
	"github.com/nixl-otel/nixl-otel/internal/must"
)

func file(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent")
	must.OK(t, os.WriteFile(path, []byte("ring"), 0o600))
	return path
}

func TestUsersFindsMappingsAndConsumer(t *testing.T) {
	path := file(t)
	proc := procs.FS(procstest.Make(t, path, procstest.Initial,
		procstest.Process{PID: 30, Lock: true}, procstest.Process{PID: 20},
		procstest.Process{PID: 25, ReadOnly: true}, procstest.Process{PID: 40, Hidden: true}))
	missing := filepath.Join(t.TempDir(), "missing")
	all := proc.Users(path, missing)
	consumer := procs.Process{PID: 30, Command: "prog30", Writable: true}
	want := map[string]*procs.Users{path: {
		Mapped:   []procs.Process{{PID: 20, Command: "prog20", Writable: true}, {PID: 25, Command: "prog25"}, consumer},
		Consumer: &consumer, Hidden: []procs.Process{{PID: 40, Command: "prog40"}},
	}}
	if diff := cmp.Diff(want, all, cmpopts.IgnoreUnexported(procs.Users{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]procs.Process{{PID: 20, Command: "prog20", Writable: true}}, all[path].Writers()); diff != "" {
		t.Error(diff)
	}
	got, complete := proc.Consumers(path, missing)
	if diff := cmp.Diff(map[string]procs.Process{path: consumer}, got); diff != "" || !complete {
		t.Errorf("all %v %s", complete, diff)
	}
}

func TestProcessesThatCanNotBeInspectedAreNamed(t *testing.T) {
	path := file(t)
	hidden, other := procstest.Process{PID: 40, Hidden: true}, procstest.Process{PID: 50, Hidden: true}
	for _, tt := range []struct {
		namespace, want string
		list            []procstest.Process
	}{
		{procstest.Initial, "", []procstest.Process{{PID: 20}}},
		{procstest.Initial, "process 40 (prog40) can't be inspected; run this as root, with all capabilities", []procstest.Process{hidden}},
		{procstest.Initial, "2 processes, such as 40 (prog40), can't be inspected; run this as root, with all capabilities", []procstest.Process{other, hidden}},
		{procstest.Inner, "processes outside of this PID namespace can't be inspected; run this outside of any container", []procstest.Process{hidden}},
	} {
		if got := procs.FS(procstest.Make(t, path, tt.namespace, tt.list...)).Users(path)[path].Unseen(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

func TestMissingProcHasNoUsers(t *testing.T) {
	path := file(t)
	proc := procs.FS(filepath.Join(t.TempDir(), "missing"))
	if u := proc.Users(path)[path]; len(u.Mapped) > 0 || u.Consumer != nil || u.Deserted() {
		t.Errorf("%+v", u)
	}
	if got, all := proc.Consumers(path); len(got) > 0 || all {
		t.Errorf("%+v, all %v", got, all)
	}
}

// Among too many locks, that of the consumer isn't found. One of two writers is an agent, though.
func TestConsumerIsUnknownIfThereAreTooManyLocks(t *testing.T) {
	for _, tt := range []struct {
		writers []procstest.Process
		want    procs.Alive
	}{
		{[]procstest.Process{{PID: 30, Lock: true}}, procs.Unknown},
		{[]procstest.Process{{PID: 30, Lock: true}, {PID: 20}}, procs.Yes},
		{nil, procs.Unknown},
	} {
		path := file(t)
		proc := procstest.Make(t, path, procstest.Initial, tt.writers...)
		procstest.Flood(t, proc)
		if list, all := procs.FS(proc).Consumers(path); all || len(list) > 0 {
			t.Errorf("%v, all %v", list, all)
		}
		u := procs.FS(proc).Users(path)[path]
		if got := u.Alive(procs.Attended{Open: true, Known: true}); got != tt.want || !u.Unlisted || u.Unseen() != procs.ManyLocks {
			t.Errorf("%d writers: alive %v, want %v: %+v", len(tt.writers), got, tt.want, u)
		}
	}
}

func TestAliveIsUnknownUnlessCertain(t *testing.T) {
	open, closed, unknown := procs.Attended{Open: true, Known: true}, procs.Attended{Known: true}, procs.Attended{}
	agent, consumer := procstest.Process{PID: 20}, procstest.Process{PID: 30, Lock: true}
	reader, hidden := procstest.Process{PID: 25, ReadOnly: true}, procstest.Process{PID: 40, Hidden: true}
	for name, tt := range map[string]struct {
		attended  procs.Attended
		namespace string
		list      []procstest.Process
		want      procs.Alive
	}{
		"agent":                                 {open, procstest.Initial, []procstest.Process{agent}, procs.Yes},
		"agent and consumer":                    {open, procstest.Initial, []procstest.Process{agent, consumer}, procs.Yes},
		"agent, in a container":                 {open, procstest.Inner, []procstest.Process{agent, hidden}, procs.Yes},
		"consumer only":                         {open, procstest.Initial, []procstest.Process{consumer, reader}, procs.No},
		"consumer only, lease state unknown":    {unknown, procstest.Initial, []procstest.Process{consumer}, procs.No},
		"consumer and a hidden process":         {open, procstest.Initial, []procstest.Process{consumer, hidden}, procs.Unknown},
		"consumer and a hidden init process":    {open, procstest.Initial, []procstest.Process{consumer, {PID: 1, Hidden: true}}, procs.No},
		"consumer and init, in a container":     {open, procstest.Inner, []procstest.Process{consumer, {PID: 1, Hidden: true}}, procs.Unknown},
		"consumer, in a container":              {open, procstest.Inner, []procstest.Process{consumer}, procs.Unknown},
		"open, but no process found":            {open, procstest.Initial, nil, procs.Unknown},
		"no process, lease state unknown":       {unknown, procstest.Initial, []procstest.Process{reader}, procs.Unknown},
		"no known process, lease state unknown": {unknown, procstest.Inner, nil, procs.Unknown},
		"not open":                              {closed, procstest.Initial, nil, procs.No},
		"not open, in a container":              {closed, procstest.Inner, []procstest.Process{hidden}, procs.No},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			u := procs.FS(procstest.Make(t, path, tt.namespace, tt.list...)).Users(path)[path]
			if got := u.Alive(tt.attended); got != tt.want {
				t.Errorf("alive: %v, want %v", got, tt.want)
			}
		})
	}
	var none *procs.Users // the processes weren't inspected
	if none.Alive(open) != procs.Unknown || none.Alive(closed) != procs.No {
		t.Error("want unknown if open and no if not open")
	}
}
