// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// pods is a kubelet's directory, and a Watcher that searches it when look is called.
type pods struct {
	*fixture
	watcher *Watcher
}

// newPods starts a watcher with a finder of a directory; that of the kubelet if it is nil.
func newPods(t *testing.T, finder func(dir string) Finder) *pods {
	t.Helper()
	x := newFixture(t)
	if finder == nil {
		finder = func(dir string) Finder { return Kubelet{Pods: dir}.Finder(DefaultIdentifyBy) }
	}
	cfg := Config{Finder: finder(x.dir), Include: []string{"*"}, Now: x.clock}
	if cfg.Interval == DefaultInterval {
		cfg.Interval = time.Hour // tests call look
	}
	reporter := notice.New(x.report, x.clock)
	p := NewWatcher(cfg, x.owner.send, reporter)
	p.seekWait = time.Hour
	p.Start()
	t.Cleanup(func() {
		x.owner.stop()
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
	dir := filepath.Join(pod, "volumes", "kubernetes.io~empty-dir", volume)
	must.OK(p.t, os.MkdirAll(filepath.Join(p.dir, dir), 0o750))
	return p.ring(filepath.Join(dir, name), ringbuf.V4, 8)
}

// look searches and walks all directories. It first lets some time pass: the watcher may have seen
// a ring while agent was creating it, and tries it again after a while.
func (p *pods) look() {
	p.t.Helper()
	p.advance(4 * pollInterval)
	p.watcher.Refresh()
}

func (p *pods) opened() map[string]drain.Agent {
	agents := make(map[string]drain.Agent)
	for _, m := range p.owner.takeMessages() {
		switch m := m.(type) {
		case drain.Offer:
			if m.Reader != nil { // else the ring is locked, and only the owner knows whether by this process
				agents[m.Agent.ID] = m.Agent
			}
		case drain.Attributed:
			agents[m.Agent.ID] = m.Agent
		}
	}
	return agents
}

func TestWatcherSearchesAgainAfterItsInterval(t *testing.T) {
	x, begins, ends, stopped := newFixture(t), make(chan string), make(chan string), make(chan struct{})
	send := func(to chan string, text string) {
		select {
		case to <- text:
		case <-stopped:
		}
	}
	w := NewWatcher(Config{
		Finder: Finder{Source: "processes", Name: "/proc", Interval: time.Millisecond, Find: func(time.Time) (map[string]Location, error) {
			send(begins, "")
			x.advance(time.Second)
			return nil, nil //nolint:nilnil // nothing changes
		}},
		Now: x.clock, Searched: func(source string, took time.Duration) { send(ends, fmt.Sprint(source, " ", took)) },
	}, x.owner.send, notice.New(x.report, x.clock))
	w.Start()
	for range 3 {
		<-begins
		if got := <-ends; got != "processes 1s" {
			t.Errorf("searched %s", got)
		}
	}
	<-begins // this search doesn't end
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := w.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "/proc") {
		t.Errorf("stopped during a search: %v", err)
	}
	close(stopped)
	must.OK(t, w.Stop(t.Context()))
}

func TestSearchesAndWalksLeaveNoFilesOpen(t *testing.T) {
	x := newFixture(t)
	must.OK(t, os.MkdirAll(x.path("uid-1/volumes/kubernetes.io~empty-dir/shm"), 0o700))
	finder := Kubelet{Pods: x.dir}.Finder(DefaultIdentifyBy)
	d := x.directory(func(o *options) { o.Include = []string{"**"} })
	var open []int
	for range 2 { // the first one opens what the runtime needs
		found, err := finder.Find(x.now)
		must.OK(t, err)
		d.walk()
		list, err := os.ReadDir("/proc/self/fd")
		must.OK(t, err)
		if open = append(open, len(list)); len(found) != 1 {
			t.Errorf("found %v", found)
		}
	}
	if open[1] > open[0] {
		t.Errorf("%d files are open, then %d", open[0], open[1])
	}
}

func TestIdentifyBySelectsPartsOfID(t *testing.T) {
	const pod, box = "uid-1", "0123"
	rank := []attribute.KeyValue{attribute.String(semconv.LocalRank, "3")}
	for _, c := range []struct {
		by   IdentifyBy
		from origin
		want string
	}{
		{DefaultIdentifyBy, origin{pod: pod, container: box, resource: rank}, "pod uid-1 /tmp/a"},
		{DefaultIdentifyBy, origin{container: box}, "pod 0123 /tmp/a"},
		{DefaultIdentifyBy, origin{unit: "system.slice/a.service"}, "pod system.slice/a.service /tmp/a"},
		{DefaultIdentifyBy, origin{pod: pod, container: box, containerName: "main", unit: "job_7"}, "pod uid-1 main job_7 /tmp/a"},
		{DefaultIdentifyBy, origin{pod: pod, container: box, nested: true}, "pod uid-1 0123 /tmp/a"},
		{DefaultIdentifyBy, origin{container: box, nested: true, unit: "a.service"}, "pod 0123 a.service /tmp/a"},
		{IdentifyBy{ByContainer, ByAgent}, origin{unit: "a.service"}, "container a.service /tmp/a"},
		{DefaultIdentifyBy, origin{}, "/tmp/a"},
		{IdentifyBy{ByAgent}, origin{pod: pod, container: box, resource: rank}, "/tmp/a"},
		{IdentifyBy{ByContainer, ByAgent}, origin{pod: pod, container: box}, "container 0123 /tmp/a"},
		{IdentifyBy{ByPod, ByRank}, origin{pod: pod, container: box, resource: rank}, "pod uid-1 rank 3"},
		{IdentifyBy{ByRank, ByPod}, origin{pod: pod, container: box, resource: rank}, "pod uid-1 rank 3"},
		// The path of the ring replaces an unknown part.
		{IdentifyBy{ByPod, ByRank}, origin{pod: pod, container: box}, "pod uid-1 /tmp/a"},
		{IdentifyBy{ByRank}, origin{}, "/tmp/a"},
	} {
		if err := c.by.Check(); err != nil {
			t.Error(err)
		}
		a := c.by.identify(drain.Agent{Name: "a", Dir: "/tmp", Path: "/proc/1/root/tmp/a"}, c.from)
		if replaced := !slices.Contains(c.by, ByAgent) && strings.Contains(a.ID, "/tmp/a"); replaced != (a.unknown != "") {
			t.Errorf("%v of %+v: unknown is %q", c.by, c.from, a.unknown)
		}
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

// A pod controls its environment, but not its cgroup.
func TestKernelAttributesReplaceEnvironmentAttributes(t *testing.T) {
	a := DefaultIdentifyBy.identify(drain.Agent{}, origin{pod: "uid-1", resource: []attribute.KeyValue{
		attribute.String(semconv.K8SPodUID, "uid-2"), attribute.String(semconv.ServiceName, "decode"),
	}})
	want := attribute.NewSet(attribute.String(semconv.K8SPodUID, "uid-1"), attribute.String(semconv.ServiceName, "decode"))
	if a.Resource != want {
		t.Errorf("resource is %v, want %v", a.Resource.ToSlice(), want.ToSlice())
	}
}

// What changes when an agent restarts is part of its resource only if it identifies the
// agent, because backends take totals with other attributes for others.
func TestResourceStaysWhenAnAgentRestarts(t *testing.T) {
	for name, c := range map[string]struct {
		by   IdentifyBy
		pod  string
		want string // ID, resource, and attributes of the process; %[1]d is the run
	}{
		"pod": {
			DefaultIdentifyBy, "uid-1",
			"pod uid-1 worker /tmp/a {k8s.container.name=worker,k8s.pod.uid=uid-1} {container.id=id-%[1]d,process.pid=%[1]d}",
		},
		"container": {
			IdentifyBy{ByContainer, ByAgent},
			"uid-1",
			"container id-%[1]d /tmp/a {container.id=id-%[1]d,k8s.container.name=worker,k8s.pod.uid=uid-1} {process.pid=%[1]d}",
		},
		"container instead of a pod": {
			DefaultIdentifyBy, "",
			"pod id-%[1]d /tmp/a {container.id=id-%[1]d,k8s.container.name=worker} {process.pid=%[1]d}",
		},
		"neither the pod nor container": {
			IdentifyBy{ByAgent},
			"uid-1",
			"/tmp/a {k8s.container.name=worker,k8s.pod.uid=uid-1} {container.id=id-%[1]d,process.pid=%[1]d}",
		},
	} {
		for run := 1; run <= 2; run++ {
			a := c.by.identify(drain.Agent{Name: "a", Dir: "/tmp"}, origin{
				pod: c.pod, container: fmt.Sprint("id-", run), containerName: "worker", process: []attribute.KeyValue{attribute.Int(semconv.ProcessPID, run)},
			})
			enc := attribute.DefaultEncoder()
			if got, want := fmt.Sprintf("%s {%s} {%s}", a.ID, a.Resource.Encoded(enc), a.Process.Encoded(enc)), fmt.Sprintf(c.want, run); got != want {
				t.Errorf("%s: agent is\n%s, want\n%s", name, got, want)
			}
		}
	}
}
