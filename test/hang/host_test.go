// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package hang

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// patience is the maximum time that a test waits.
const patience = time.Minute

// system is a host under test with its notices.
type system struct {
	t *testing.T
	*engine.Engine

	mu      sync.Mutex
	notices []notice.Notice
}

func start(t *testing.T, store engine.Storage, dirs ...string) *system {
	t.Helper()
	s := &system{t: t}
	h, err := engine.New(engine.Config{Directories: dirs, Report: s.report})
	must.OK(t, err)
	must.OK(t, h.Start(store))
	s.Engine = h
	return s
}

func (s *system) report(n notice.Notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notices = append(s.notices, n)
}

// reported reports whether a notice of a kind contains a text.
func (s *system) reported(k notice.Kind, what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.notices, func(n notice.Notice) bool {
		return n.Kind == k && strings.Contains(n.String(), what)
	})
}

// collect collects with a timeout of a second.
func (s *system) collect() engine.Collection {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
	defer cancel()
	return s.collectBy(ctx)
}

func (s *system) collectBy(ctx context.Context) engine.Collection {
	s.t.Helper()
	done := make(chan engine.Collection, 1)
	go func() {
		c, err := s.Collect(ctx, false)
		if err != nil {
			s.t.Log(err)
		}
		done <- c
	}()
	select {
	case c := <-done:
		return c
	case <-ctx.Done():
	}
	select {
	case c := <-done:
		return c
	case <-time.After(patience):
		s.t.Fatal("Collect doesn't return after its context has ended")
		return engine.Collection{}
	}
}

// requests returns the reported number of an agent's writes, and whether the agent is reported.
func requests(c engine.Collection, path string) (n uint64, reported bool) {
	for _, s := range c.Snapshots {
		if s.Path == path {
			return s.Totals.Requests(tally.Transmit).Events, true
		}
	}
	return 0, false
}

// await collects until an agent is reported with a number of writes.
func (s *system) await(path string, want uint64) {
	s.t.Helper()
	s.until(func() bool {
		n, _ := requests(s.collect(), path)
		if n > want {
			s.t.Fatalf("%d events are counted, %d were written", n, want)
		}
		return n == want
	}, "the events of "+path+" aren't all counted")
}

// until waits until ok returns true.
func (s *system) until(ok func() bool, otherwise string) {
	s.t.Helper()
	for begun := time.Now(); !ok(); {
		if time.Since(begun) > patience {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.t.Fatalf("%s; notices: %v", otherwise, s.notices)
		}
	}
}

// stop stops the host with a timeout of a second. If hangs is set, Stop must return an error with this text.
func (s *system) stop(hangs string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(ctx) }()
	select {
	case err := <-stopped:
		if (err != nil) != (hangs != "") || err != nil && !strings.Contains(err.Error(), hangs) {
			s.t.Errorf("Stop returns %v, want an error about %q", err, hangs)
		}
	case <-time.After(patience):
		s.t.Fatal("Stop doesn't return after its context has ended")
	}
}

// agent creates a ring in a directory.
func agent(t *testing.T, dir, name string, capacity int) *ringbuf.Writer {
	t.Helper()
	w, err := ringbuf.Create(filepath.Join(dir, name), ringbuf.V4, capacity)
	must.OK(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// push pushes writes, which must all fit in the ring.
func push(t *testing.T, w *ringbuf.Writer, n int) {
	t.Helper()
	for range n {
		must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxRequests, 1)))
	}
}
