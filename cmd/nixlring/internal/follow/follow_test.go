// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package follow_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/follow"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// story is a handler that stores its calls.
type story struct{ lines []string }

func (s *story) Opened(r *follow.Ring) {
	s.lines = append(s.lines, fmt.Sprintf("%s opened %v %d", r.Name(), r.Layout(), r.Capacity()))
}

func (s *story) Events(r *follow.Ring, b ringbuf.Batch) {
	var values []string
	for i := range b.Len() {
		e := b.Event(i)
		values = append(values, fmt.Sprint(e.Value))
	}
	s.lines = append(s.lines, r.Name()+" "+strings.Join(values, ","))
}

func (s *story) Missed(r *follow.Ring, err error) {
	s.lines = append(s.lines, r.Name()+" missed: "+err.Error())
}

func (s *story) Ended(r *follow.Ring, err error) {
	for _, known := range []error{ringbuf.ErrRestarted, ringbuf.ErrShrunk, follow.ErrReplaced} {
		if errors.Is(err, known) {
			err = known
		}
	}
	s.lines = append(s.lines, r.Name()+" ended: "+err.Error())
}

// expect compares the calls since the last expect.
func (s *story) expect(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, s.lines); diff != "" {
		t.Errorf("(-want +got): %s", diff)
	}
	s.lines = nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, path string, l ringbuf.Layout, capacity int) *ringbuf.Writer {
	t.Helper()
	w, err := ringbuf.Create(path, l, capacity)
	must(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func push(t *testing.T, w *ringbuf.Writer, values ...uint64) {
	t.Helper()
	for _, v := range values {
		must(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, v)))
	}
}

func TestRingIsFollowedAcrossRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent")
	var s story
	r := follow.NewRing(path, ringbuf.Consume, &s)
	defer r.Close()
	if err := r.Poll(0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no ring: %v", err)
	}
	w := create(t, path, ringbuf.V4, 8)
	push(t, w, 1, 2, 3)
	must(t, r.Poll(2))
	must(t, r.Commit())
	must(t, r.Poll(0))
	must(t, r.Commit())
	s.expect(t, path+" opened v4 8", path+" 1,2", path+" 3")

	w = create(t, path, ringbuf.V1, 16) // restarts, with another layout
	push(t, w, 4)
	if err := r.Poll(0); err != nil {
		t.Error(err)
	}
	must(t, r.Poll(0))
	must(t, r.Commit())
	s.expect(t, path+" ended: "+ringbuf.ErrRestarted.Error(), path+" opened v1 16", path+" 4")

	push(t, w, 5)
	must(t, os.Remove(path)) // the agent continues to write
	must(t, r.Check())
	must(t, r.Poll(0))
	must(t, r.Commit())
	s.expect(t, path+" 5")

	push(t, w, 6)
	push(t, create(t, path, ringbuf.V4, 8), 7) // another agent takes the name
	must(t, r.Check())
	must(t, r.Poll(0))
	s.expect(t, path+" 6", path+" ended: "+follow.ErrReplaced.Error(), path+" opened v4 8", path+" 7")
	if r.Read() != 7 || r.Fill() != 1 {
		t.Errorf("%d read, %d in the ring", r.Read(), r.Fill())
	}

	must(t, os.Truncate(path, 100))
	must(t, r.Check())
	s.expect(t, path+" ended: "+ringbuf.ErrShrunk.Error())
	if err := r.Poll(0); !errors.Is(err, ringbuf.ErrInvalid) {
		t.Errorf("a truncated ring: %v", err)
	}
}

func TestEventsOfAForeignReaderAreReportedAsMissed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent")
	w := create(t, path, ringbuf.V4, 8)
	push(t, w, 1, 2, 3)
	var s story
	r := follow.NewRing(path, ringbuf.Consume, &s)
	defer r.Close()
	must(t, r.Poll(1))
	ringtest.Edit(t, path, func(h *ringtest.Header) { h.ReadPos = 2 })
	must(t, r.Poll(0))
	must(t, r.Poll(0))
	must(t, r.Commit())
	if len(s.lines) != 4 || !strings.Contains(s.lines[2], "another process consumed events") || s.lines[3] != path+" 3" {
		t.Errorf("%q", s.lines)
	}
}

func TestDirFindsRingsOfNewAgents(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	var s story
	d := follow.NewDir(follow.DirConfig{Path: dir, Recursive: true, Handler: &s, Now: func() time.Time { return now }})
	defer d.Close()
	poll := func() {
		t.Helper()
		must(t, d.Poll())
		now = now.Add(10 * time.Millisecond)
	}
	must(t, os.WriteFile(filepath.Join(dir, "letter"), []byte(strings.Repeat("hello ", 50)), 0o600))
	poll()
	s.expect(t)

	a := create(t, filepath.Join(dir, "a"), ringbuf.V4, 8)
	push(t, a, 1)
	poll()
	push(t, a, 2)
	poll()
	poll()
	s.expect(t, "a opened v4 8", "a 1", "a 2")

	must(t, os.Mkdir(filepath.Join(dir, "team"), 0o755))
	poll()
	push(t, create(t, filepath.Join(dir, "team", "b"), ringbuf.V1, 8), 3)
	starting := filepath.Join(dir, "c") // an agent that initializes its ring slowly
	must(t, os.WriteFile(starting, nil, 0o600))
	poll()
	s.expect(t, "team/b opened v1 8", "team/b 3")
	push(t, create(t, starting, ringbuf.V2, 8), 4)
	poll()
	s.expect(t, "c opened v2 8", "c 4")
	if rings := d.Rings(); len(rings) != 3 || rings[0].Name() != "a" || rings[2].Name() != "team/b" {
		t.Errorf("%d rings", len(rings))
	}

	must(t, os.RemoveAll(dir))
	now = now.Add(time.Minute)
	if err := d.Poll(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	push(t, a, 5) // to the removed file
	_ = d.Poll()
	s.expect(t, "a 5")
}

func TestDirSeesAllEventsBesideAConsumer(t *testing.T) {
	dir := t.TempDir()
	w := create(t, filepath.Join(dir, "a"), ringbuf.V4, 8)
	consumer, err := ringbuf.OpenReader(filepath.Join(dir, "a"), ringbuf.Consume)
	must(t, err)
	defer consumer.Close()
	var s story
	d := follow.NewDir(follow.DirConfig{Path: dir, Handler: &s})
	defer d.Close()
	must(t, d.Poll())
	s.expect(t, "a opened v4 8")
	for i := range uint64(20) {
		push(t, w, i, i)
		if i%2 == 0 { // alternate who is first
			must(t, d.Poll())
		}
		_, err := consumer.Read(0, func(ringbuf.Batch) {})
		must(t, errors.Join(err, consumer.Commit()))
		must(t, d.Poll())
		s.expect(t, fmt.Sprintf("a %d,%d", i, i))
	}
}
