// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// pods is a kubelet's directory, and Places that searches it when a test asks it to.
type pods struct {
	*world
	places *Places
}

func newPods(t *testing.T, change func(*PlacesConfig)) *pods {
	t.Helper()
	x := newWorld(t)
	cfg := PlacesConfig{
		Config:   Config{Now: x.clock, Rings: NewRings(1000)},
		Finder:   Kubelet{Pods: x.dir, Volumes: []string{"*"}}.Finder(DefaultIdentifyBy),
		Interval: time.Hour, // tests search
	}
	if change != nil {
		change(&cfg)
	}
	reporter := notice.New(x.report, x.clock)
	p := NewPlaces(cfg, x.owner.send, reporter)
	p.Start()
	t.Cleanup(func() {
		x.owner.giveUp()
		if err := p.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		reporter.Close()
	})
	return &pods{x, p}
}

// agent creates a ring in a volume of a pod.
func (p *pods) agent(pod, volume, name string) *ringbuf.Writer {
	p.t.Helper()
	folder := filepath.Join(pod, "volumes", "kubernetes.io~empty-dir", volume)
	if err := os.MkdirAll(filepath.Join(p.dir, folder), 0o750); err != nil {
		p.t.Fatal(err)
	}
	return p.ring(filepath.Join(folder, name), ringbuf.V4, 8)
}

// look searches and walks everything.
func (p *pods) look() {
	p.t.Helper()
	done := make(chan struct{})
	p.places.Look(func() { close(done) })
	<-done
}

func (p *pods) opened() map[string]drain.Agent {
	agents := make(map[string]drain.Agent)
	for _, m := range p.owner.got() {
		if m, ok := m.(drain.Opened); ok {
			agents[m.Agent.ID] = m.Agent
		}
	}
	return agents
}

func TestVolumesOfPodsAreFound(t *testing.T) {
	x := newPods(t, func(c *PlacesConfig) {
		c.Finder = Kubelet{Pods: c.Finder.Name(), Volumes: []string{"shm", "ring*"}}.Finder(DefaultIdentifyBy)
	})
	x.agent("uid-1", "shm", "decode")
	x.agent("uid-2", "shm", "decode") // the same name in another pod
	x.agent("uid-2", "rings", "prefill")
	x.agent("uid-2", "scratch", "other") // no volume of these
	x.look()
	got := make(map[string]string)
	for id, a := range x.opened() {
		uid, _ := a.Resource.Value(semconv.K8SPodUID)
		got[id] = uid.AsString() + " " + a.Dir + " " + a.Name
	}
	want := map[string]string{
		"pod uid-1 shm/decode":    "uid-1 shm decode",
		"pod uid-2 shm/decode":    "uid-2 shm decode",
		"pod uid-2 rings/prefill": "uid-2 rings prefill",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("agents (-want +got):\n%s", d)
	}
}

// An open ring would keep the volume, and so the pod, from being removed.
func TestRingOfAnExitedAgentIsGivenUpUntilTheAgentRestarts(t *testing.T) {
	x := newPods(t, func(c *PlacesConfig) { c.CloseExited = true })
	const id = "pod uid-1 shm/decode"
	w := x.agent("uid-1", "shm", "decode")
	push(t, w, 3)
	x.look()
	if n := count[drain.Gone](x.owner); n != 0 {
		t.Errorf("the ring was given up %d times while its agent ran", n)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	x.look()
	await(x.owner, func(m drain.Gone) bool { return m.ID == id })
	x.owner.drain() // the commit changes the file's time, on a disk
	x.owner.giveUp()
	x.look()
	if n := x.places.State().Open; n != 0 {
		t.Errorf("%d rings are open after their agent has exited", n)
	}
	x.owner.got()
	x.agent("uid-1", "shm", "decode")
	x.look()
	if _, found := x.opened()[id]; !found {
		t.Error("the ring wasn't opened again after its agent restarted")
	}
}

func TestPodThatIsDeletedLeavesNothing(t *testing.T) {
	x := newPods(t, nil)
	for _, pod := range []string{"uid-1", "uid-2", "uid-3"} {
		w := x.agent(pod, "shm", "decode")
		push(t, w, 3)
		x.look()
		if err := errors.Join(w.Close(), os.RemoveAll(x.path(pod))); err != nil {
			t.Fatal(err)
		}
		x.look()
		x.owner.drain()
		id := "pod " + pod + " shm/decode"
		await(x.owner, func(m drain.Gone) bool { return m.ID == id })
		path := x.opened()[id].Path
		if n := x.owner.counts[path]; n != 3 {
			t.Errorf("counted %d events, want 3", n)
		}
		x.owner.retire(path)
		wait := time.NewTicker(time.Millisecond)
		for range wait.C { // its goroutine ends
			x.look()
			if len(x.places.directories(true)) == 0 {
				break
			}
		}
		wait.Stop()
	}
	if s := x.places.State(); s.Open != 0 || len(s.Refused) != 0 || s.Missing != nil {
		t.Errorf("state is %+v", s)
	}
	if r := x.places.cfg.Rings; len(r.ids) != 0 || len(r.paths) != 0 {
		t.Errorf("counted still: agents %v, rings %v", r.ids, r.paths)
	}
}

// A search that fails says nothing about what it has found before.
func TestSearchThatFailsIsReportedAndKeepsWhatWasFound(t *testing.T) {
	x := newPods(t, nil)
	x.agent("uid-1", "shm", "decode")
	x.look()
	rename(t, x.dir, x.dir+"-away")
	x.look()
	x.look()
	if s := x.places.State(); s.Open != 1 || s.Missing == nil || !strings.Contains(s.Missing.Error(), x.dir) {
		t.Errorf("state is %+v", s)
	}
	told := x.toldBy(x.places.notices, notice.DiscoveryFailed)
	if len(told) != 1 || told[0].Path != x.dir || told[0].Err == nil {
		t.Errorf("reported %+v, want the failure once", told)
	}
	rename(t, x.dir+"-away", x.dir)
	x.look()
	if told := x.toldBy(x.places.notices, notice.DiscoveryWorks); len(told) != 1 || x.places.State().Missing != nil {
		t.Errorf("reported %+v, want that it works once", told)
	}
}

func TestLinksOfAPodAreNotFollowed(t *testing.T) {
	x := newPods(t, nil)
	w := x.agent("uid-1", "shm", "decode")
	outside := t.TempDir()
	ring, err := ringbuf.Create(filepath.Join(outside, "secret"), ringbuf.V4, 8)
	if err != nil {
		t.Fatal(err)
	}
	defer ring.Close()
	volume := filepath.Dir(w.Path())
	if err := errors.Join(
		os.Symlink(outside, filepath.Join(volume, "folder")),
		os.Symlink(filepath.Join(outside, "secret"), filepath.Join(volume, "file")),
		os.Symlink(outside, filepath.Join(filepath.Dir(volume), "other")),
	); err != nil {
		t.Fatal(err)
	}
	x.look()
	if got := x.opened(); len(got) != 1 {
		t.Errorf("opened %v, want decode only", got)
	}
}

func TestIdentity(t *testing.T) {
	const pod, box = "uid-1", "0123"
	rank := []attribute.KeyValue{attribute.String(semconv.LocalRank, "3")}
	for _, c := range []struct {
		by   IdentifyBy
		from origin
		want string
	}{
		{DefaultIdentifyBy, origin{pod: pod, container: box, resource: rank}, "pod uid-1 /tmp/a"},
		{DefaultIdentifyBy, origin{container: box}, "pod 0123 /tmp/a"},
		{DefaultIdentifyBy, origin{namespace: "mnt:[7] /"}, "pod mnt:[7] / /tmp/a"},
		{DefaultIdentifyBy, origin{}, "/tmp/a"},
		{IdentifyBy{ByAgent}, origin{pod: pod, container: box, resource: rank}, "/tmp/a"},
		{IdentifyBy{ByContainer, ByAgent}, origin{pod: pod, container: box}, "container 0123 /tmp/a"},
		{IdentifyBy{ByPod, ByRank}, origin{pod: pod, container: box, resource: rank}, "pod uid-1 rank 3"},
		{IdentifyBy{ByRank, ByPod}, origin{pod: pod, container: box, resource: rank}, "pod uid-1 rank 3"},
		// What isn't known doesn't make agents one.
		{IdentifyBy{ByPod, ByRank}, origin{pod: pod, container: box}, "pod uid-1 /tmp/a"},
		{IdentifyBy{ByRank}, origin{}, "/tmp/a"},
	} {
		if err := c.by.Check(); err != nil {
			t.Error(err)
		}
		a := c.by.identify(drain.Agent{Name: "a", Dir: "/tmp", Path: "/proc/1/root/tmp/a"}, c.from)
		if a.ID != c.want {
			t.Errorf("%v of %+v: %q, want %q", c.by, c.from, a.ID, c.want)
		}
	}
	for _, by := range []IdentifyBy{nil, {"name"}, {ByPod, ByPod}} {
		if by.Check() == nil {
			t.Errorf("%v is accepted", by)
		}
	}
}

// The kernel knows the pod; the environment is the pod's own.
func TestWhatTheKernelSaysWins(t *testing.T) {
	a := DefaultIdentifyBy.identify(drain.Agent{}, origin{pod: "uid-1", resource: []attribute.KeyValue{
		attribute.String(semconv.K8SPodUID, "uid-2"), attribute.String(semconv.ServiceName, "decode"),
	}})
	want := attribute.NewSet(attribute.String(semconv.K8SPodUID, "uid-1"), attribute.String(semconv.ServiceName, "decode"))
	if a.Resource != want {
		t.Errorf("resource is %v, want %v", a.Resource.ToSlice(), want.ToSlice())
	}
}
