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

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/processtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

const podUID = "0a1b2c3d-0000-4000-8000-000000000001"

// memoryStore is a store in memory.
type memoryStore struct {
	mu     sync.Mutex
	values map[string][]byte
	hangs  chan struct{} // if set, it sends a value when it begins to store, and then hangs until it can send another one
}

func (m *memoryStore) Get(_ context.Context, keys []string) (values [][]byte, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		values = append(values, m.values[key])
	}
	return values, nil
}

func (m *memoryStore) Apply(_ context.Context, ops []Op) error {
	if m.hangs != nil {
		m.hangs <- struct{}{}
		m.hangs <- struct{}{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, op := range ops {
		m.values[op.Key] = op.Value
	}
	return nil
}

// push writes events to a ring.
func push(t *testing.T, w *ringbuf.Writer, kind ringbuf.Type, events int) {
	t.Helper()
	for range events {
		must.OK(t, w.Push(ringbuf.NewEvent(kind, 1)))
	}
}

// Two containers of a pod have agents of one name in directories of one name. The containers restart alone,
// also while this process restarts.
func TestAgentsOfOneNameInTwoContainersKeepTheirTotals(t *testing.T) {
	machine, storage := processtest.New(t), &memoryStore{values: make(map[string][]byte)}
	start := func(n int, name string) *ringbuf.Writer {
		root := t.TempDir()
		must.OK(t, os.Mkdir(filepath.Join(root, "shm"), 0o750))
		machine.Start(processtest.Process{
			PID: n, Namespace: fmt.Sprintf("mnt:[%d]", n), Cgroup: processtest.InPod(podUID, strings.Repeat(fmt.Sprint(n), 64)), Root: root,
			Mounts: "22 1 0:1 /var/lib/kubelet/pods/" + podUID + "/containers/" + name + "/0a1b2c3d /dev/termination-log rw - ext4 /dev/sda rw\n",
			Env:    []string{"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR=/shm"},
		})
		w, err := ringbuf.Create(filepath.Join(root, "shm", "agent"), ringbuf.V4, 64)
		must.OK(t, err)
		t.Cleanup(func() { _ = w.Close() })
		return w
	}
	run := func(check func(await func(prefill, decode int))) {
		t.Helper()
		e, err := New(Config{Processes: &discover.Processes{Proc: machine.Proc, Interval: time.Hour}})
		must.OK(t, err)
		must.OK(t, e.Start(storage))
		check(func(prefill, decode int) {
			t.Helper()
			want := map[string]int{"pod " + podUID + " prefill /shm/agent": prefill, "pod " + podUID + " decode /shm/agent": decode}
			must.Eventually(t, func() string {
				e.refreshed.Store(false) // search and walk
				c, err := e.Collect(t.Context(), false)
				must.OK(t, err)
				e.Delivered(c)
				got := make(map[string]int)
				for _, s := range c.Snapshots {
					got[s.ID] = int(s.Totals.Requests(0).Sum.Int64())
				}
				return cmp.Diff(want, got)
			})
		})
		must.OK(t, e.Stop(context.Background()))
	}
	prefill, decode := start(2, "prefill"), start(3, "decode")
	push(t, prefill, ringbuf.TypeTxRequests, 3)
	push(t, decode, ringbuf.TypeTxRequests, 5)
	run(func(await func(prefill, decode int)) { await(3, 5) })
	machine.Exit(2)
	push(t, start(4, "prefill"), ringbuf.TypeTxRequests, 7)
	push(t, decode, ringbuf.TypeTxRequests, 1)
	run(func(await func(prefill, decode int)) {
		await(3+7, 5+1)
		machine.Exit(3)
		must.OK(t, decode.Close())
		push(t, start(5, "decode"), ringbuf.TypeTxRequests, 8)
		await(3+7, 5+1+8)
	})
}
