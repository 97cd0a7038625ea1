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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/processtest"
	"github.com/nixl-otel/nixl-otel/internal/storetest"
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
		Kubelet:   &discover.Kubelet{Pods: pods, Volumes: []string{"shm"}},
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

// The last values of a container are collected, although its directory can no longer be read.
func TestStoresOfContainerAreCollectedAfterItsExit(t *testing.T) {
	machine, dir := processtest.New(t), t.TempDir()
	s := storetest.Create(t, dir, storetest.Config{PID: 7})
	machine.Start(processtest.Process{
		PID: 1007, NSPID: 7, Namespace: "mnt:[10]", Cgroup: processtest.InPod(podUID, strings.Repeat("1", 64)),
		Env: []string{"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_EXPORTER=prometheus_mp", "NIXL_TELEMETRY_MULTIPROC_DIR=" + dir},
	})
	h, err := New(Config{Stores: true, Processes: &discover.Processes{Proc: machine.Proc, Interval: time.Hour}})
	must.OK(t, err)
	must.OK(t, h.Start(nil))
	collect := func(requests int64, up drain.Up) {
		t.Helper()
		h.refreshed.Store(false) // search and walk
		c, err := h.Collect(t.Context(), false)
		if err != nil || len(c.Snapshots) != 1 {
			t.Fatalf("%d stores, error %v; want one store", len(c.Snapshots), err)
		}
		type store struct {
			Requests int64
			Up       drain.Up
			Pod      string
			PID      int64
		}
		one := c.Snapshots[0]
		pod, _ := one.Resource.Value(semconv.K8SPodUID)
		pid, _ := one.Process.Value(semconv.ProcessPID)
		got := store{one.Totals.Requests(0).Sum.Int64(), one.Up, pod.AsString(), pid.AsInt64()}
		if d := cmp.Diff(store{requests, up, podUID, 1007}, got); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	}
	s.Count(storetest.TxRequests, 10)
	collect(10, drain.UpYes)
	s.Count(storetest.TxRequests, 5)
	s.Exit()
	machine.Exit(1007)
	collect(15, drain.UpNo)
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

func TestErrorsAndNoticesArePassedOn(t *testing.T) {
	dir := t.TempDir()
	w, err := ringbuf.Create(filepath.Join(dir, "agent"), ringbuf.V4, 8)
	must.OK(t, err)
	defer w.Close()
	must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeErrBackend, 1)))
	var failures, notices []string
	h, err := New(Config{Directories: []string{dir}, Report: func(n notice.Notice) {
		if n.Kind == notice.LogsDropped {
			notices = append(notices, n.Text)
		}
	}})
	must.OK(t, err)
	must.OK(t, h.Stop(t.Context())) // before Start
	h.Watch(nil, func(a *Agent, e tally.Error) { failures = append(failures, a.Name+" "+e.Type.String()) })
	must.OK(t, h.Start(nil))
	_, err = h.Collect(t.Context(), false)
	must.OK(t, err)
	h.Report(notice.Notice{Kind: notice.LogsDropped, Text: "dropped"})
	must.OK(t, h.Stop(context.Background()))
	if d := cmp.Diff([][]string{{"agent agent_err_backend"}, {"dropped"}}, [][]string{failures, notices}); d != "" {
		t.Errorf("errors and notices (-want +got)\n%s", d)
	}
}

// A test of each part of the configuration has the complete errors.
func TestEveryPartOfTheConfigurationIsChecked(t *testing.T) {
	kubelet := &discover.Kubelet{Pods: "/pods", Volumes: []string{"*"}}
	for key, change := range map[string]func(*Config){
		"":                                 func(c *Config) { c.RunInterval, c.StaleAfter, c.MaxRings = LeastInterval, discover.ProbeInterval, 1 },
		"directories: none":                func(c *Config) { c.Directories = nil },
		"directories: a path is empty":     func(c *Config) { c.Directories = []string{""} },
		"resource::k8s.pod.uid":            func(c *Config) { c.Directories, c.Kubelet, c.PodUID = nil, kubelet, "uid" },
		"discovery::processes::interval":   func(c *Config) { c.Processes = &discover.Processes{Interval: 1} },
		"discovery::kubelet::path":         func(c *Config) { c.Kubelet = &discover.Kubelet{Pods: "pods", Volumes: []string{"*"}} },
		"identify_by":                      func(c *Config) { c.IdentifyBy = []string{"name"} },
		"include":                          func(c *Config) { c.Include = []string{""} },
		"exclude":                          func(c *Config) { c.Exclude = []string{""} },
		"resource: Prometheus can't carry": func(c *Config) { c.Resource = map[string]string{"job": "a"} },
		"run_interval":                     func(c *Config) { c.RunInterval = LeastInterval - 1 },
		"max_rings":                        func(c *Config) { c.MaxRings = -1 },
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
