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
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/engine/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/processtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

const podUID = "0a1b2c3d-0000-4000-8000-000000000001"

// memoryStore is a store in memory.
type memoryStore struct {
	mu     sync.Mutex
	values map[string][]byte
}

func (m *memoryStore) Get(_ context.Context, keys []string) (values [][]byte, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		values = append(values, m.values[key])
	}
	return values, nil
}

func (m *memoryStore) Apply(_ context.Context, ops []checkpoint.Op) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, op := range ops {
		m.values[op.Key] = op.Value
	}
	return nil
}

// twins are two containers of a pod, with agents of one name in directories of their own.
type twins struct {
	t       *testing.T
	machine *processtest.Host
	roots   map[string]string // by the container's ID
	rings   map[string]*ringbuf.Writer
	written map[string]int
}

func newTwins(t *testing.T) *twins {
	t.Helper()
	return &twins{t, processtest.New(t), make(map[string]string), make(map[string]*ringbuf.Writer), make(map[string]int)}
}

// start starts a container with a name. Its process has the PID 10 times n.
func (x *twins) start(n int, name string) (container string) {
	x.t.Helper()
	container = strings.Repeat(fmt.Sprint(n), 64)
	root := x.t.TempDir()
	must.OK(x.t, os.Mkdir(filepath.Join(root, "shm"), 0o750))
	x.roots[container] = root
	x.machine.Start(processtest.Process{
		PID: 10 * n, Namespace: fmt.Sprintf("mnt:[%d]", n), Cgroup: processtest.InPod(podUID, container), Root: root,
		Mounts: "22 1 0:1 /var/lib/kubelet/pods/" + podUID + "/containers/" + name + "/0a1b2c3d /dev/termination-log rw - ext4 /dev/sda rw\n",
		Env:    []string{"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR=/shm"},
	})
	return container
}

// write writes events to the ring of a container's agent. It creates the ring if necessary.
func (x *twins) write(container string, events int) {
	x.t.Helper()
	w := x.rings[container]
	if w == nil {
		var err error
		w, err = ringbuf.Create(filepath.Join(x.roots[container], "shm", "decode"), ringbuf.V4, 64)
		must.OK(x.t, err)
		x.t.Cleanup(func() { _ = w.Close() })
		x.rings[container] = w
	}
	for range events {
		must.OK(x.t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxRequests, 1)))
	}
	x.written[container] += events
}

// run starts a host, calls fn, and stops the host.
func (x *twins) run(storage checkpoint.Storage, fn func(*Engine)) {
	x.t.Helper()
	h, err := New(Config{Processes: &discover.Processes{Proc: x.machine.Proc, Interval: time.Hour}})
	must.OK(x.t, err)
	must.OK(x.t, h.Start(storage))
	fn(h)
	must.OK(x.t, h.Stop(context.Background()))
}

// await waits until the host reports a number of requests by ID.
func (x *twins) await(h *Engine, want map[string]int) {
	x.t.Helper()
	must.Eventually(x.t, func() string {
		h.refreshed.Store(false) // search and walk
		c, err := h.Collect(x.t.Context(), false)
		must.OK(x.t, err)
		h.Delivered(c)
		got := make(map[string]int)
		for _, s := range c.Snapshots {
			got[s.ID] = int(s.Totals.Requests(0).Sum.Int64())
		}
		return cmp.Diff(want, got)
	})
}

// id returns the identity of the agent in a container of the pod.
func id(name string) string { return "pod " + podUID + " " + name + " /shm/decode" }

func TestAgentsOfOneNameInTwoContainersAreBothCounted(t *testing.T) {
	for name, storage := range map[string]checkpoint.Storage{"with storage": &memoryStore{values: make(map[string][]byte)}, "without storage": nil} {
		t.Run(name, func(t *testing.T) {
			x := newTwins(t)
			a, b := x.start(1, "prefill"), x.start(2, "decode")
			x.write(a, 3)
			x.write(b, 5)
			for range 5 { // this process restarts
				x.run(storage, func(h *Engine) {
					x.await(h, map[string]int{id("prefill"): x.written[a], id("decode"): x.written[b]})
				})
				if storage == nil { // the totals start from zero
					clear(x.written)
				}
				x.write(a, 1)
				x.write(b, 2)
			}
		})
	}
}

// A container restarts while this process doesn't run.
func TestAgentsKeepTheirIdentitiesIfOneContainerRestarts(t *testing.T) {
	x := newTwins(t)
	storage := &memoryStore{values: make(map[string][]byte)}
	a, b := x.start(1, "prefill"), x.start(2, "decode")
	x.write(a, 3)
	x.write(b, 5)
	x.run(storage, func(h *Engine) { x.await(h, map[string]int{id("prefill"): 3, id("decode"): 5}) })
	x.machine.Exit(10)
	again := x.start(3, "prefill")
	x.write(again, 7)
	x.write(b, 1)
	x.run(storage, func(h *Engine) { x.await(h, map[string]int{id("prefill"): 3 + 7, id("decode"): 5 + 1}) })
}

// A container that restarts alone continues its totals.
func TestAgentOfRestartedContainerKeepsItsIdentity(t *testing.T) {
	x := newTwins(t)
	a := x.start(1, "decode")
	x.write(a, 3)
	x.run(nil, func(h *Engine) {
		x.await(h, map[string]int{id("decode"): 3})
		x.machine.Exit(10)
		must.OK(t, x.rings[a].Close())
		b := x.start(2, "decode")
		x.write(b, 5)
		x.await(h, map[string]int{id("decode"): 3 + 5})
	})
}
