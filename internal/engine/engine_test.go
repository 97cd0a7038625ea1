// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/processtest"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/lab/storetest"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(ringVariable); path != "" {
		runAgent(path)
		return
	}
	goleak.VerifyTestMain(m)
}

// An agent can't set an attribute that the operator sets for all agents.
func TestEveryAgentHasTheConfiguredResource(t *testing.T) {
	machine, dir, discovered := processtest.New(t), t.TempDir(), t.TempDir()
	machine.Start(processtest.Process{PID: 10, Namespace: "mnt:[1]", Maps: discovered + "/discovered", Env: []string{
		"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR=" + discovered, "OTEL_RESOURCE_ATTRIBUTES=team=b,k8s-cluster-name=c,zone=d",
	}})
	pods := t.TempDir()
	volume := filepath.Join(pods, "uid-1", "volumes", "kubernetes.io~empty-dir", "shm")
	must.OK(t, os.MkdirAll(volume, 0o750))
	for _, path := range []string{discovered + "/discovered", dir + "/ring", volume + "/pod"} {
		w, err := ringbuf.Create(path, ringbuf.V4, 8)
		must.OK(t, err)
		defer w.Close()
		must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxRequests, 1)))
	}
	storetest.Create(t, dir, storetest.Config{Agent: "store"})
	h, err := New(Config{
		Directories: []string{dir}, Stores: true, Resource: map[string]string{"team": "a", "k8s.cluster.name": "east", "empty": ""},
		Processes: &discover.Processes{Proc: machine.Proc, Interval: time.Hour, Attributes: []string{"*"}},
		Kubelet:   &discover.Kubelet{Pods: pods},
	})
	must.OK(t, err)
	must.OK(t, h.Start(nil))
	c, err := h.Collect(t.Context(), false)
	must.OK(t, err)
	must.OK(t, h.Stop(context.Background()))
	got := make(map[string]string)
	for _, s := range c.Snapshots {
		got[s.Name] = s.Resource.Encoded(attribute.DefaultEncoder())
	}
	const all = "k8s.cluster.name=east,team=a"
	want := map[string]string{"discovered": all + ",zone=d", "ring": all, "store": all, "pod": "k8s.cluster.name=east,k8s.pod.uid=uid-1,team=a"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestStopCanBeCalledAgain(t *testing.T) {
	e, err := New(Config{Directories: []string{t.TempDir()}})
	must.OK(t, err)
	must.OK(t, e.Start(&memoryStore{values: make(map[string][]byte)}))
	for range 2 {
		must.OK(t, e.Stop(context.Background()))
	}
}

// A Collector is killed before it has exported what it has stored. Then a container is removed, and the next
// Collector finds neither its agent nor its ring.
func TestStoredTotalsAreExportedAlthoughTheRingIsGone(t *testing.T) {
	machine, root := processtest.New(t), t.TempDir()
	for name, cfg := range map[string]Config{
		"directories": {Directories: []string{root}},
		"processes":   {Processes: &discover.Processes{Proc: machine.Proc, Interval: time.Hour}},
		"kubelet":     {Kubelet: &discover.Kubelet{Pods: root}},
	} {
		t.Run(name, func(t *testing.T) {
			storage := &memoryStore{values: make(map[string][]byte)}
			cfg.Stream = func(s *Snapshot) attribute.Set { return attribute.NewSet(attribute.String("id", s.ID)) }
			dir := root
			switch name {
			case "kubelet":
				dir = filepath.Join(root, podUID, "volumes", "kubernetes.io~empty-dir", "nixl")
				must.OK(t, os.MkdirAll(dir, 0o750))
			case "processes":
				dir = t.TempDir()
				machine.Start(processtest.Process{PID: 7, Namespace: "mnt:[7]", Maps: dir + "/agent", Env: []string{
					"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR=" + dir,
				}})
			}
			w, err := ringbuf.Create(filepath.Join(dir, "agent"), ringbuf.V4, 64)
			must.OK(t, err)
			defer w.Close()
			push(t, w, ringbuf.TypeTxRequests, 5)
			var stream attribute.Set
			for _, delivers := range []bool{false, true} {
				e, err := New(cfg)
				must.OK(t, err)
				must.OK(t, e.Start(storage))
				for collection := range 2 {
					c, err := e.Collect(t.Context(), false)
					must.OK(t, err)
					want := []string{"5 requests"}
					if delivers && collection == 1 {
						want = nil
					}
					var got []string
					for _, s := range c.Snapshots {
						got = append(got, fmt.Sprint(s.Totals.Requests(0).Sum.Int64(), " requests"))
						if stream.Len() > 0 && !stream.Equals(&s.Stream) {
							t.Errorf("stream %v, before %v", s.Stream, stream)
						}
						stream = s.Stream
					}
					if d := cmp.Diff(want, got); d != "" {
						t.Errorf("delivers %v, collection %d: (-want +got)\n%s", delivers, collection+1, d)
					}
					if delivers {
						e.Delivered(c)
					}
				}
				must.OK(t, e.Stop(context.Background()))
				if name == "processes" {
					machine.Exit(7)
				}
				must.OK(t, os.RemoveAll(filepath.Join(dir, "agent")))
			}
		})
	}
}

// The last values of a container are collected, although its directory can no longer be read.
func TestStoresOfContainerAreCollectedAfterItsExit(t *testing.T) {
	machine, dir := processtest.New(t), t.TempDir()
	s := storetest.Create(t, dir, storetest.Config{PID: 7})
	machine.Start(processtest.Process{
		PID: 1007, Maps: s.Path(), Namespace: "mnt:[10]", Cgroup: processtest.InPod(podUID, strings.Repeat("1", 64)),
		Env: []string{"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_EXPORTER=prometheus_mp", "NIXL_TELEMETRY_MULTIPROC_DIR=" + dir},
	})
	h, err := New(Config{Stores: true, Processes: &discover.Processes{Proc: machine.Proc, Interval: time.Hour}})
	must.OK(t, err)
	must.OK(t, h.Start(nil))
	collect := func(requests int64, up drain.Up) {
		t.Helper()
		h.refreshed.Store(false) // search and walk
		c, err := h.Collect(t.Context(), false)
		must.OK(t, err)
		var got []string
		for _, s := range c.Snapshots {
			pod, _ := s.Resource.Value(semconv.K8SPodUID)
			pid, _ := s.Process.Value(semconv.ProcessPID)
			got = append(got, fmt.Sprint(pod.AsString(), pid.AsInt64(), s.Totals.Requests(0).Sum, s.Totals.Duration().Counts(), s.Up))
		}
		if d := cmp.Diff([]string{fmt.Sprint(podUID, 1007, tally.Sum{Lo: uint64(requests)}, []int64{0, requests, 0, 0}, up)}, got); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	}
	transfer := func() { s.Transfer(0, 1, 50, 1) }
	transfer()
	collect(1, drain.UpYes)
	transfer()
	s.Exit()
	machine.Exit(1007)
	collect(2, drain.UpNo)
	must.OK(t, h.Stop(context.Background()))
}

func TestLastCollectionCancelsSlowSearch(t *testing.T) {
	dir := t.TempDir()
	h, err := New(Config{Directories: []string{dir}})
	must.OK(t, err)
	must.OK(t, h.Start(nil))
	must.OK(t, h.sources[0].Stop(t.Context()))
	w, err := ringbuf.Create(filepath.Join(dir, "agent"), ringbuf.V4, 8)
	must.OK(t, err)
	defer w.Close()
	found := discover.Configured([]string{dir}, "", DefaultIdentifyBy)
	gate := make(chan struct{})
	slow := discover.NewWatcher(discover.Config{Include: []string{"*"}, Now: time.Now, Finder: discover.Finder{Find: func(now time.Time) (map[string]discover.Location, error) {
		all, err := found.Find(now)
		for key, l := range all {
			open := l.OpenDir
			l.OpenDir = func(name string) (*files.Dir, error) {
				<-gate
				return open(name)
			}
			all[key] = l
		}
		return all, err
	}}}, func(m drain.Message) { t.Errorf("%+v is sent after the search was canceled", m) }, h.reporter)
	slow.Start()
	h.sources[0] = slow
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	h.Refresh(ctx)
	if ctx.Err() != nil {
		t.Error("a search took all the time, want a quarter of it")
	}
	if _, err := h.Collect(t.Context(), true); err != nil {
		t.Error(err)
	}
	close(gate)
	must.OK(t, h.Stop(context.Background()))
}

// A program may collect right after the start, and an agent may have started and exited since the last search.
func TestFirstAndLastCollectionSearch(t *testing.T) {
	machine := processtest.New(t)
	searched := make(chan string, 10)
	h, err := New(Config{
		Processes: &discover.Processes{Proc: machine.Proc, Interval: time.Hour},
		Telemetry: Telemetry{Searched: func(source string, _ time.Duration) { searched <- source }},
	})
	must.OK(t, err)
	must.OK(t, h.Start(nil))
	if source := <-searched; source != "processes" {
		t.Errorf("%q was searched", source)
	}
	for i, c := range []struct {
		last bool
		want int
	}{{false, 1}, {false, 1}, {true, 3}} {
		dir := t.TempDir()
		w, err := ringbuf.Create(filepath.Join(dir, "agent"), ringbuf.V4, 8)
		must.OK(t, err)
		defer w.Close()
		machine.Start(processtest.Process{PID: 10 + i, Namespace: "mnt:[1]", Env: []string{"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR=" + dir}})
		got, err := h.Collect(t.Context(), c.last)
		must.OK(t, err)
		if len(got.Snapshots) != c.want {
			t.Errorf("collection %d has %d agents, want %d", i, len(got.Snapshots), c.want)
		}
	}
	must.OK(t, h.Stop(context.Background()))
}

// A shutdown must not wait for storage that hangs.
func TestStopNamesStorageThatHangs(t *testing.T) {
	dir, storage := t.TempDir(), &memoryStore{values: make(map[string][]byte), hangs: make(chan struct{})}
	w, err := ringbuf.Create(filepath.Join(dir, "agent"), ringbuf.V4, 8)
	must.OK(t, err)
	defer w.Close()
	h, err := New(Config{Directories: []string{dir}})
	must.OK(t, err)
	must.OK(t, h.Start(storage))
	<-storage.hangs
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := h.Stop(ctx); !strings.Contains(fmt.Sprint(err), "storage") {
		t.Errorf("error %v", err)
	}
	<-storage.hangs
}

func TestEverythingIsPassedOn(t *testing.T) {
	dir := t.TempDir()
	w, err := ringbuf.Create(filepath.Join(dir, "agent"), ringbuf.V4, 8)
	must.OK(t, err)
	defer w.Close()
	push(t, w, ringbuf.TypeErrBackend, 2)
	var got, lags, saves atomic.Int64
	var failures, notices []string
	h, err := New(Config{
		Directories: []string{dir},
		Report: func(n notice.Notice) {
			if n.Kind == notice.LogsDropped || strings.Contains(n.Text, "suppressed") {
				notices = append(notices, n.Text)
			}
		},
		Telemetry: Telemetry{
			Events: func(n uint64) { got.Add(int64(n)) }, Lag: func(time.Duration) { lags.Store(1) }, Saved: func(time.Duration, error) { saves.Store(1) },
		},
	})
	must.OK(t, err)
	must.OK(t, h.Stop(t.Context())) // before Start
	h.Watch(nil, func(a *Agent, e tally.Error) { failures = append(failures, a.Name+" "+e.Type.String()) })
	must.OK(t, h.Start(&memoryStore{values: make(map[string][]byte)}))
	_, err = h.Collect(t.Context(), false)
	must.OK(t, err)
	must.EventuallyTrue(t, "round of drains", func() bool { return lags.Load() > 0 })
	for range 3 {
		h.Report(notice.Notice{Kind: notice.LogsDropped, Text: "dropped"})
	}
	must.OK(t, h.Stop(context.Background()))
	want := [][]string{{"agent agent_err_backend", "agent agent_err_backend"}, {"dropped", "2 suppressed: repetitions, or too many lines in a minute"}}
	if d := cmp.Diff(want, [][]string{failures, notices}) + cmp.Diff([]int64{2, 1}, []int64{got.Load(), saves.Load()}); d != "" {
		t.Errorf("errors and notices; numbers of events and saves (-want +got)\n%s", d)
	}
}

func TestConfigurationSelectsRingsAndWhetherTheyAreConsumed(t *testing.T) {
	type result struct {
		Agents   int
		Consumed bool
	}
	for name, c := range map[string]struct {
		change func(*Config)
		want   result
	}{
		"default":          {func(*Config) {}, result{2, true}},
		"observe":          {func(c *Config) { c.Observe = true }, result{2, false}},
		"included":         {func(c *Config) { c.Include = []string{"a*"} }, result{1, true}},
		"of another owner": {func(c *Config) { c.AllowedUIDs = []uint32{uint32(os.Getuid()) + 1} }, result{0, false}},
	} {
		dir := t.TempDir()
		for _, agent := range []string{"a", "b"} {
			w, err := ringbuf.Create(filepath.Join(dir, agent), ringbuf.V4, 8)
			must.OK(t, err)
			defer w.Close()
			push(t, w, ringbuf.TypeTxRequests, 3)
		}
		cfg := Config{Directories: []string{dir}}
		c.change(&cfg)
		h, err := New(cfg)
		must.OK(t, err)
		must.OK(t, h.Start(nil))
		got, err := h.Collect(t.Context(), false)
		must.OK(t, err)
		must.OK(t, h.Stop(context.Background()))
		consumed := ringtest.ReadHeader(t, filepath.Join(dir, "a")).Drained() || ringtest.ReadHeader(t, filepath.Join(dir, "b")).Drained()
		if d := cmp.Diff(c.want, result{len(got.Snapshots), consumed}); d != "" {
			t.Errorf("%s: (-want +got)\n%s", name, d)
		}
	}
}

// A test of each part of the configuration has the complete errors.
func TestEveryPartOfTheConfigurationIsChecked(t *testing.T) {
	kubelet := &discover.Kubelet{Pods: "/pods"}
	for key, change := range map[string]func(*Config){
		"":                                 func(c *Config) { c.RunInterval, c.StaleAfter = LeastInterval, discover.ProbeInterval },
		"directories: none":                func(c *Config) { c.Directories = nil },
		"directories: a path is empty":     func(c *Config) { c.Directories = []string{""} },
		"resource::k8s.pod.uid":            func(c *Config) { c.Directories, c.Kubelet, c.PodUID = nil, kubelet, "uid" },
		"discovery::processes::interval":   func(c *Config) { c.Processes = &discover.Processes{Interval: 1} },
		"discovery::kubelet::path":         func(c *Config) { c.Kubelet = &discover.Kubelet{Pods: "pods"} },
		"identify_by":                      func(c *Config) { c.IdentifyBy = []string{"name"} },
		"include":                          func(c *Config) { c.Include = []string{""} },
		"resource: Prometheus can't carry": func(c *Config) { c.Resource = map[string]string{"job": "a"} },
		"run interval":                     func(c *Config) { c.RunInterval = LeastInterval - 1 },
		"stale_after":                      func(c *Config) { c.StaleAfter = discover.ProbeInterval - 1 },
		"duration: kind":                   func(c *Config) { c.Tally.Duration.Kind = "linear" },
	} {
		cfg := Config{Directories: []string{"/rings"}}
		change(&cfg)
		_, err := New(cfg)
		if got := fmt.Sprint(err); key == "" && err != nil || !strings.HasPrefix(got, key) {
			t.Errorf("error %q, want one of %q", got, key)
		}
	}
}
