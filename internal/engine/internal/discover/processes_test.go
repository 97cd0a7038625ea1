// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/processtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// machine is a proc file system in a directory, and a Watcher that searches it.
type machine struct {
	*pods
	host *processtest.Host
}

func newMachine(t *testing.T, by IdentifyBy) *machine {
	t.Helper()
	host := processtest.New(t)
	x := newPods(t, func(c *Config) {
		c.Finder = Processes{Proc: host.Proc, Interval: time.Hour, EnvAttributes: map[string]string{"LOCAL_RANK": semconv.LocalRank}, Attributes: []string{"*"}}.Finder(by)
	})
	return &machine{x, host}
}

var (
	uid1, uid2             = "0a1b2c3d-0000-4000-8000-000000000001", "0a1b2c3d-0000-4000-8000-000000000002"
	container1, container2 = strings.Repeat("1", 64), strings.Repeat("2", 64)
)

// agentIn creates a ring in a directory and returns the environment of its process.
func (m *machine) agentIn(dir, name string, more ...string) (*ringbuf.Writer, []string) {
	m.t.Helper()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		m.t.Fatal(err)
	}
	w, err := ringbuf.Create(filepath.Join(dir, name), ringbuf.V4, 8)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = w.Close() })
	return w, append(more, "NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR="+dir)
}

func TestProcessesFindsAgentsWithPodAndEnvironment(t *testing.T) {
	x := newMachine(t, DefaultIdentifyBy)
	tmp := t.TempDir()
	_, env1 := x.agentIn(filepath.Join(tmp, "1"), "decode", "LOCAL_RANK=0", "OTEL_SERVICE_NAME=llm",
		"SECRET=x", "OTEL_RESOURCE_ATTRIBUTES=team=a,k8s.namespace.name=other,k8s.pod.uid="+uid2+",service.instance.id=y")
	_, env2 := x.agentIn(filepath.Join(tmp, "2"), "decode", "LOCAL_RANK=1")
	x.host.Start(processtest.Process{PID: 10, Namespace: "mnt:[10]", Cgroup: processtest.InPod(uid1, container1), Env: env1, Maps: tmp + "/1/decode"})
	x.host.Start(processtest.Process{PID: 20, Namespace: "mnt:[20]", Cgroup: processtest.InPod(uid2, container2), Env: env2, Maps: tmp + "/2/decode"})
	x.look()
	got := make(map[string]map[string]string)
	for id, a := range x.opened() {
		got[id] = map[string]string{"path": a.Path}
		for _, kv := range append(a.Resource.ToSlice(), a.Process.ToSlice()...) {
			got[id][string(kv.Key)] = kv.Value.String()
		}
	}
	want := map[string]map[string]string{
		"pod " + uid1 + " " + tmp + "/1/decode": {
			"path": x.host.Proc + "/10/root" + tmp + "/1/decode", "k8s.pod.uid": uid1, "container.id": container1, "process.pid": "10",
			"process.executable.name": "python3", "nixl.local_rank": "0", "service.name": "llm", "team": "a",
		},
		"pod " + uid2 + " " + tmp + "/2/decode": {
			"path": x.host.Proc + "/20/root" + tmp + "/2/decode", "k8s.pod.uid": uid2, "container.id": container2, "process.pid": "20",
			"process.executable.name": "python3", "nixl.local_rank": "1",
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("agents (-want +got):\n%s", d)
	}
}

// The process that has the ring mapped is the agent's.
func TestRanksInOneContainerAreDistinguished(t *testing.T) {
	x := newMachine(t, IdentifyBy{ByPod, ByRank})
	dir := filepath.Join(t.TempDir(), "shm")
	for rank := range 3 {
		name := fmt.Sprintf("agent-%d-f81d4fae", rank)
		env := []string{"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR=" + dir, fmt.Sprintf("LOCAL_RANK=%d", rank)}
		x.host.Start(processtest.Process{PID: 10 + rank, Namespace: "mnt:[10]", Cgroup: processtest.InPod(uid1, container1), Env: env, Maps: dir + "/" + name})
		x.agentIn(dir, name)
	}
	x.agentIn(dir, "agent-0-left") // by an earlier process
	x.look()
	got := make(map[string]string)
	for id, a := range x.opened() {
		got[id] = a.Name
	}
	want := map[string]string{
		"pod " + uid1 + " rank 0": "agent-0-f81d4fae", "pod " + uid1 + " rank 1": "agent-1-f81d4fae", "pod " + uid1 + " rank 2": "agent-2-f81d4fae",
		"pod " + uid1 + " " + dir + "/agent-0-left": "agent-0-left",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("agents (-want +got):\n%s", d)
	}
}

// An earlier process may have left the ring. It had another rank, and maybe another service.
func TestRingThatNoProcessMapsHasWhatTheProcessesHaveInCommon(t *testing.T) {
	for processes, want := range map[int]string{1: "k8s.pod.uid=" + uid1 + ",service.name=llm", 2: "k8s.pod.uid=" + uid1} {
		x := newMachine(t, DefaultIdentifyBy)
		dir := filepath.Join(t.TempDir(), "shm")
		_, env := x.agentIn(dir, "left", "OTEL_SERVICE_NAME=llm", "LOCAL_RANK=3")
		for pid := range processes {
			x.host.Start(processtest.Process{PID: 10 + pid, Namespace: "mnt:[10]", Cgroup: processtest.InPod(uid1, container1), Env: env})
		}
		x.look()
		for id, a := range x.opened() {
			if got := a.Resource.Encoded(attribute.DefaultEncoder()); a.Unattributed || got != want {
				t.Errorf("%d processes: %s has %s, want %s", processes, id, got, want)
			}
		}
	}
}

// A ring is drained at once, and attributed to its process after the next search.
func TestRingOfNewWorkerIsDrainedBeforeItIsAttributed(t *testing.T) {
	x := newMachine(t, DefaultIdentifyBy)
	dir := filepath.Join(t.TempDir(), "shm")
	must.OK(t, os.MkdirAll(dir, 0o750))
	env := []string{"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR=" + dir}
	server := processtest.Process{PID: 10, Namespace: "mnt:[10]", Cgroup: processtest.InPod(uid1, container1), Env: env}
	x.host.Start(server)
	x.look()
	worker := server
	worker.PID, worker.Env, worker.Maps = 11, append(env, "LOCAL_RANK=1"), dir+"/decode"
	x.host.Start(worker)
	w, _ := x.agentIn(dir, "decode")
	push(t, w, 5)
	x.walk()
	id := "pod " + uid1 + " " + dir + "/decode"
	if a := x.opened()[id]; !a.Unattributed || a.Resource.HasValue(semconv.LocalRank) {
		t.Errorf("%+v before the search", a)
	}
	x.owner.drain()
	must.OK(t, w.Close()) // the events that were counted are those of this agent
	x.look()
	agents := x.opened()
	a := agents[id]
	rank, _ := a.Resource.Value(semconv.LocalRank)
	pid, _ := a.Process.Value(semconv.ProcessPID)
	if len(agents) != 1 || a.Unattributed || rank.AsString() != "1" || pid.AsInt64() != 11 {
		t.Errorf("agents = %+v", agents)
	}
}

// The ring of a container that is removed before the next search is exported without attributes
// of its process.
func TestRingOfRemovedContainerIsAttributed(t *testing.T) {
	x := newMachine(t, DefaultIdentifyBy)
	dir := filepath.Join(t.TempDir(), "shm")
	must.OK(t, os.MkdirAll(dir, 0o750))
	env := []string{"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR=" + dir}
	x.host.Start(processtest.Process{PID: 10, Namespace: "mnt:[10]", Cgroup: processtest.InPod(uid1, container1), Env: env})
	x.look()
	x.agentIn(dir, "decode")
	x.walk()
	x.host.Exit(10)
	x.look()
	a := await(x.owner, func(drain.Attributed) bool { return true })
	uid, _ := a.Agent.Resource.Value(semconv.K8SPodUID)
	if a.Agent.Unattributed || uid.AsString() != uid1 {
		t.Errorf("agent = %+v", a.Agent)
	}
}

// hang starts a process whose environment can't be read until the test ends.
func hang(h *processtest.Host) {
	h.Start(processtest.Process{PID: 12, Namespace: "mnt:[10]", Cgroup: processtest.InPod(uid1, container1)})
	environ := h.Path(12, "environ")
	must.OK(h.TB, errors.Join(os.Remove(environ), syscall.Mkfifo(environ, 0o600)))
	h.TB.Cleanup(func() {
		f, err := os.OpenFile(environ, os.O_RDWR, 0)
		must.OK(h.TB, errors.Join(err, f.Close()))
	})
}

// What the last search has found decides, unless it is too old, or was cut short.
func TestIdentifyReportsWhetherARingIsMapped(t *testing.T) {
	for name, tc := range map[string]struct {
		maps  bool                    // a process maps the ring when it is found
		then  func(*processtest.Host) // what happens after the first search
		again bool                    // there is another search
		by    IdentifyBy
		want  string
	}{
		"mapped":                           {maps: true, want: "pod, up"},
		"its process has exited":           {maps: true, then: func(h *processtest.Host) { h.Exit(11) }, want: "pod, sought"},
		"its process has exited, searched": {maps: true, then: func(h *processtest.Host) { h.Exit(11) }, again: true, want: "pod, exited"},
		"not mapped":                       {want: "pod, sought"},
		"not mapped, searched":             {again: true, want: "pod, exited"},
		"a process hangs":                  {then: hang, again: true, want: "pod, sought"},
		"by rank":                          {by: IdentifyBy{ByPod, ByRank}, want: ", sought"},
		"by rank, searched":                {by: IdentifyBy{ByPod, ByRank}, again: true, want: "pod, exited"},
	} {
		t.Run(name, func(t *testing.T) {
			host, dir := processtest.New(t), t.TempDir()
			w, err := ringbuf.Create(filepath.Join(dir, "agent"), ringbuf.V4, 8)
			must.OK(t, err)
			defer w.Close()
			env := []string{"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR=" + dir}
			for pid := 10; pid <= 11; pid++ {
				p := processtest.Process{PID: pid, Namespace: "mnt:[10]", Cgroup: processtest.InPod(uid1, container1), Env: env}
				if pid == 11 && tc.maps {
					p.Maps = dir + "/agent"
				}
				host.Start(p)
			}
			by := tc.by
			if by == nil {
				by = DefaultIdentifyBy
			}
			finder := Processes{Proc: host.Proc}.Finder(by)
			search := func() (l Location) {
				found, err := finder.Find(time.Now())
				must.OK(t, err)
				for _, l = range found {
					return l
				}
				t.Fatal("nothing found")
				return l
			}
			l := search()
			ring, err := ringbuf.OpenReader(w.Path(), ringbuf.Observe)
			must.OK(t, err)
			defer ring.Close()
			since := time.Now()
			if tc.then != nil {
				tc.then(host)
			}
			if tc.again {
				l = search()
			}
			a, up := l.Identify(drain.Agent{Name: "agent", Unattributed: true}, ring, since)
			part, _, _ := strings.Cut(a.ID, " ")
			got := part + ", " + map[drain.Up]string{drain.UpYes: "up", drain.UpNo: "exited"}[up]
			if a.Unattributed {
				got += "sought"
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A process that runs may map a new ring at any time, but its mappings are read rarely.
func TestProcessesOfSoughtRingsAreExaminedAgain(t *testing.T) {
	x := newMachine(t, DefaultIdentifyBy)
	dir := filepath.Join(t.TempDir(), "shm")
	must.OK(t, os.MkdirAll(dir, 0o750))
	p := processtest.Process{PID: 10, Namespace: "mnt:[10]", Cgroup: processtest.InPod(uid1, container1), Env: []string{"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR=" + dir}}
	x.host.Start(p)
	x.look()
	x.agentIn(dir, "decode")
	maps := fmt.Sprintf("7f0000000000-7f0000001000 rw-s 00000000 00:01 9                   %s/decode\n", dir)
	must.OK(t, os.WriteFile(filepath.Join(x.host.Proc, "10", "maps"), []byte(maps), 0o600))
	x.look()
	for id, a := range x.opened() {
		if pid, _ := a.Process.Value(semconv.ProcessPID); pid.AsInt64() != 10 {
			t.Errorf("%s: %+v", id, a)
		}
	}
}

// Each container has limits and identities of its own. Directories of the host have the rings of many users.
func TestHolderIsTheContainerOrTheDirectoryOfTheHost(t *testing.T) {
	host := processtest.New(t)
	env := func(dir string) []string { return []string{"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR=" + dir} }
	host.Start(processtest.Process{PID: 10, Namespace: "mnt:[1]", Env: env("/host")})
	host.Start(processtest.Process{PID: 11, Namespace: "mnt:[11]", Env: env("/sandbox")})
	host.Start(processtest.Process{PID: 12, Namespace: "mnt:[12]", Cgroup: "/docker/" + container1, Env: env("/container")})
	host.Start(processtest.Process{PID: 13, Namespace: "mnt:[13]", Cgroup: processtest.InPod(uid1, container2), Env: env("/pod")})
	found, err := Processes{Proc: host.Proc}.Finder(DefaultIdentifyBy).Find(time.Now())
	must.OK(t, err)
	got := make(map[string]drain.Holder)
	for _, l := range found {
		got[l.IdentifyStore(drain.Agent{Name: "a"}, 0).ID] = l.Holder
	}
	want := map[string]drain.Holder{
		"/host/a": {Place: "/host", Shared: true}, "pod mnt:[11] / /sandbox/a": {Place: "mnt:[11] /"},
		"pod " + container1 + " /container/a": {Container: container1}, "pod " + uid1 + " /pod/a": {Pod: uid1, Container: container2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// walk walks the directories before the next search.
func (m *machine) walk() {
	for _, d := range m.watcher.directories() {
		walked := make(chan struct{})
		d.request(d.refresh, func() { close(walked) })
		<-walked
	}
}

func TestRemovedContainerLeavesNoState(t *testing.T) {
	x := newMachine(t, DefaultIdentifyBy)
	dir := filepath.Join(t.TempDir(), "shm")
	w, env := x.agentIn(dir, "decode")
	x.host.Start(processtest.Process{PID: 10, Namespace: "mnt:[10]", Cgroup: processtest.InPod(uid1, container1), Env: env})
	x.host.Start(processtest.Process{PID: 11, Namespace: "mnt:[10]", Cgroup: processtest.InPod(uid1, container1), Env: env})
	x.look()
	push(t, w, 3)
	x.host.Exit(10) // the other process is still running
	x.look()
	if s := x.watcher.State(); s.Open != 1 || len(s.Missing) != 0 {
		t.Fatalf("state = %+v while a process is running", s)
	}
	must.OK(t, w.Close())
	x.host.Exit(11)
	x.look()
	if n := x.owner.drain()["decode"]; n != 3 {
		t.Errorf("counted %d events, want 3", n)
	}
	must.EventuallyTrue(t, "end of its goroutine", func() bool {
		x.look()
		x.owner.drain()
		return len(x.watcher.directories()) == 0
	})
}

// Two containers may share a volume.
func TestRingSharedByTwoContainersIsOpenedOnce(t *testing.T) {
	x := newMachine(t, DefaultIdentifyBy)
	dir := filepath.Join(t.TempDir(), "shm")
	_, env := x.agentIn(dir, "decode")
	x.host.Start(processtest.Process{PID: 10, Namespace: "mnt:[10]", Cgroup: processtest.InPod(uid1, container1), Env: env})
	x.host.Start(processtest.Process{PID: 20, Namespace: "mnt:[20]", Cgroup: processtest.InPod(uid1, container2), Env: env})
	x.look()
	if got := x.opened(); len(got) != 1 || x.watcher.State().Open != 1 {
		t.Errorf("opened %v", got)
	}
}

// The process of a store is that with the PID in its own namespace.
func TestStoresAreIdentifiedByTheirProcess(t *testing.T) {
	host := processtest.New(t)
	dir := t.TempDir()
	env := []string{"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_EXPORTER=prometheus_mp", "NIXL_TELEMETRY_MULTIPROC_DIR=" + dir, "LOCAL_RANK=3"}
	host.Start(processtest.Process{PID: 10, NSPID: 7, Namespace: "mnt:[10]", Cgroup: processtest.InPod(uid1, container1), Env: env})
	host.Start(processtest.Process{PID: 11, NSPID: 8, Namespace: "mnt:[10]", Cgroup: processtest.InPod(uid1, container1), Env: env[:3]})
	finder := Processes{Proc: host.Proc, EnvAttributes: map[string]string{"LOCAL_RANK": semconv.LocalRank}}.Finder(DefaultIdentifyBy)
	found, err := finder.Find(time.Now())
	must.OK(t, err)
	if len(found) != 1 {
		t.Fatalf("found %v", found)
	}
	for _, l := range found {
		for inNamespace, onHost := range map[int64]int64{7: 10, 8: 11, 99: 0} { // 99 has exited, or is in another namespace
			a := l.IdentifyStore(drain.Agent{Name: "decode"}, inNamespace)
			uid, _ := a.Resource.Value(semconv.K8SPodUID)
			pid, _ := a.Process.Value(semconv.ProcessPID)
			if uid.AsString() != uid1 || pid.AsInt64() != onHost || a.Dir != dir || a.Resource.HasValue(semconv.LocalRank) != (inNamespace == 7) {
				t.Errorf("process %d: agent is %+v", inNamespace, a)
			}
		}
	}
}
