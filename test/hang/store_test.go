// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package hang

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// store is a storage extension in memory that is slow, or hangs even if a call is canceled.
type store struct {
	each          time.Duration // per key
	apply, lookup gate

	mu     sync.Mutex
	values map[string][]byte
}

func newStore() *store { return &store{values: make(map[string][]byte)} }

func (s *store) Get(_ context.Context, key string) ([]byte, error) {
	s.lookup.pass()
	s.take(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[key], nil
}

func (s *store) Apply(_ context.Context, ops []engine.Op) error {
	s.apply.pass()
	s.take(len(ops))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, op := range ops {
		if op.Value == nil {
			delete(s.values, op.Key)
		} else {
			s.values[op.Key] = op.Value
		}
	}
	return nil
}

func (s *store) take(keys int) {
	if s.each > 0 {
		<-time.After(time.Duration(keys) * s.each)
	}
}

// write pushes events as the ring has room.
func write(t *testing.T, w *ringbuf.Writer, n int) {
	t.Helper()
	events := make([]ringbuf.Event, n)
	for i := range events {
		events[i] = ringbuf.NewEvent(ringbuf.TypeTxRequests, 1)
	}
	for begun := time.Now(); len(events) > 0; {
		pushed, err := w.PushBatch(events)
		must.OK(t, err)
		if events = events[pushed:]; pushed == 0 && time.Since(begun) > patience {
			t.Fatalf("the ring stays full, %d events are left", len(events))
		}
	}
}

// There are more events than the ring holds, so they must also be committed.
func TestEventsAreCountedWhileAStoreHangs(t *testing.T) {
	for call, gateOf := range map[string]func(*store) *gate{
		"Apply": func(s *store) *gate { return &s.apply },
		"Get":   func(s *store) *gate { return &s.lookup },
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			st := newStore()
			gateOf(st).shut()
			defer gateOf(st).open()
			s := start(t, st, dir)
			w := agent(t, dir, "agent", 64)
			write(t, w, 1000)
			s.await(w.Path(), 1000)
			write(t, w, 1000)
			s.await(w.Path(), 2000)
			s.until(func() bool {
				s.collect()
				return s.reported(notice.StoreHangs, "crash")
			}, "no notice reports that crash safety is lost")
			s.stop("storage")
			gateOf(st).mustHaveBlocked(t)
		})
	}
}

// The store is slow and full of checkpoints of an earlier process.
func TestNoEventIsLostWhileStaleCheckpointsAreRemoved(t *testing.T) {
	const stale, events = 500, 2184
	dir := t.TempDir()
	st := newStore()
	st.each = 10 * time.Millisecond
	var paths []string
	for i := range stale {
		path := filepath.Join(dir, fmt.Sprintf("stale-%d", i))
		st.values["agent:"+path] = []byte("totals")
		paths = append(paths, path)
	}
	st.values["agents"] = []byte(strings.Join(paths, "\x00"))
	w := agent(t, dir, "agent", 64)
	s := start(t, st, dir)
	for range events / 42 { // a run interval's events at a time
		write(t, w, 42)
	}
	s.await(w.Path(), events)
	s.stop("")
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.values["agent:"+w.Path()] == nil {
		t.Errorf("the agent's checkpoint isn't stored; there are %d values", len(st.values))
	}
}
