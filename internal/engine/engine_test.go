// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package engine

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/processtest"
	"github.com/nixl-otel/nixl-otel/internal/storetest"
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
	for _, path := range []string{discovered + "/discovered", dir + "/ring"} {
		w, err := ringbuf.Create(path, ringbuf.V4, 8)
		must.OK(t, err)
		defer w.Close()
		must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxRequests, 1)))
	}
	storetest.Create(t, dir, storetest.Config{Agent: "store"})
	h, err := New(Config{
		Directories: []string{dir}, Stores: true, Resource: map[string]string{"team": "a", "k8s.cluster.name": "east", "empty": ""},
		Processes: &discover.Processes{Proc: machine.Proc, Interval: time.Hour, Attributes: []string{"*"}},
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
	if d := cmp.Diff(map[string]string{"discovered": all + ",zone=d", "ring": all, "store": all}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// A container of a pod restarts, with another directory for its stores.
func TestTotalsOfStoresContinueAfterContainerRestart(t *testing.T) {
	machine := processtest.New(t)
	const uid = "0a1b2c3d-0000-4000-8000-000000000001"
	container := strings.Repeat("1", 64)
	dir := t.TempDir()
	start := func(pid int, namespace string) *storetest.Writer {
		t.Helper()
		s := storetest.Create(t, dir, storetest.Config{PID: int64(pid)})
		machine.Start(processtest.Process{
			PID: 1000 + pid, NSPID: pid, Namespace: namespace, Cgroup: processtest.InPod(uid, container),
			Env: []string{"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_EXPORTER=prometheus_mp", "NIXL_TELEMETRY_MULTIPROC_DIR=" + dir},
		})
		return s
	}
	h, err := New(Config{Stores: true, Processes: &discover.Processes{Proc: machine.Proc, Interval: time.Hour}})
	must.OK(t, err)
	must.OK(t, h.Start(nil))
	defer func() {
		if err := h.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	collect := func() drain.Snapshot {
		t.Helper()
		h.refreshed.Store(false) // search and walk
		c, err := h.Collect(t.Context(), false)
		if err != nil || len(c.Snapshots) != 1 {
			t.Fatalf("%d agents, error %v; want one agent", len(c.Snapshots), err)
		}
		return c.Snapshots[0]
	}

	first := start(7, "mnt:[10]")
	first.Count(storetest.TxRequests, 10)
	a := collect()
	if got := a.Totals.Requests(0).Sum.Int64(); got != 10 || a.Up != drain.UpYes {
		t.Errorf("%d requests, up %v", got, a.Up)
	}
	pod, _ := a.Resource.Value(semconv.K8SPodUID)
	pid, _ := a.Process.Value(semconv.ProcessPID)
	if pod.AsString() != uid || pid.AsInt64() != 1007 || a.Dir != dir {
		t.Errorf("agent is %+v", a.Agent)
	}

	first.Count(storetest.TxRequests, 5)
	first.Exit()
	machine.Exit(1007)
	second := start(8, "mnt:[20]")
	second.Count(storetest.TxRequests, 1)
	b := collect()
	if got := b.Totals.Requests(0).Sum.Int64(); got != 16 || b.ID != a.ID || !b.Start.Equal(a.Start) {
		t.Errorf("%d requests since %v of %s; want 16 since %v of %s", got, b.Start, b.ID, a.Start, a.ID)
	}
	second.Exit()
	machine.Exit(1008)
	if c := collect(); c.Up != drain.UpNo || c.Totals.Requests(0).Sum.Int64() != 16 {
		t.Errorf("after the last container: up %v, %d requests", c.Up, c.Totals.Requests(0).Sum.Int64())
	}
}

// slowSource is a source whose search ends only when it is canceled.
type slowSource struct {
	source

	calls    []string
	searched func() // done of the search
}

func (s *slowSource) Refresh(done func()) { s.calls, s.searched = append(s.calls, "search"), done }

func (s *slowSource) Cancel() {
	s.calls = append(s.calls, "cancel")
	s.searched()
}

func (s *slowSource) Read(done func()) {
	s.calls = append(s.calls, "read")
	done()
}

func TestLastCollectionCancelsSlowSearch(t *testing.T) {
	h, err := New(Config{Directories: []string{t.TempDir()}})
	must.OK(t, err)
	must.OK(t, h.Start(nil))
	slow := &slowSource{source: h.sources[0]}
	h.sources[0] = slow
	if _, err := h.Collect(t.Context(), true); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff([]string{"search", "cancel", "read"}, slow.calls); d != "" {
		t.Errorf("calls (-want +got)\n%s", d)
	}
	must.OK(t, h.Stop(context.Background()))
}
