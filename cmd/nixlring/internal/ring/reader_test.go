// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ring_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/ring"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// story is a handler that stores its calls.
type story struct{ lines []string }

func (s *story) Opened(r *ring.Reader) {
	s.lines = append(s.lines, fmt.Sprintf("%s opened %v %d", r.Path(), r.Layout(), r.Capacity()))
}

func (s *story) Events(r *ring.Reader, b ringbuf.Batch) {
	var values []string
	for i := range b.Len() {
		e := b.Event(i)
		values = append(values, fmt.Sprint(e.Value))
	}
	s.lines = append(s.lines, r.Path()+" "+strings.Join(values, ","))
}

func (s *story) Missed(r *ring.Reader, err error) {
	s.lines = append(s.lines, r.Path()+" missed: "+err.Error())
}

func (s *story) Ended(r *ring.Reader, err error) {
	for _, known := range []error{ringbuf.ErrRestarted, ringbuf.ErrShrunk, ring.ErrReplaced} {
		if errors.Is(err, known) {
			err = known
		}
	}
	s.lines = append(s.lines, r.Path()+" ended: "+err.Error())
}

// expect compares the calls since the last expect.
func (s *story) expect(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, s.lines); diff != "" {
		t.Errorf("(-want +got): %s", diff)
	}
	s.lines = nil
}

func create(t *testing.T, path string, l ringbuf.Layout, capacity int) *ringbuf.Writer {
	t.Helper()
	w, err := ringbuf.Create(path, l, capacity)
	must.OK(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func push(t *testing.T, w *ringbuf.Writer, values ...uint64) {
	t.Helper()
	for _, v := range values {
		must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, v)))
	}
}

func TestRingIsFollowedAcrossRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent")
	var s story
	r := ring.New(path, ringbuf.Consume, &s)
	defer r.Close()
	if err := r.Poll(0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no ring: %v", err)
	}
	w := create(t, path, ringbuf.V4, 8)
	push(t, w, 1, 2, 3)
	must.OK(t, r.Poll(2))
	must.OK(t, r.Commit())
	must.OK(t, r.Poll(0))
	must.OK(t, r.Commit())
	s.expect(t, path+" opened v4 8", path+" 1,2", path+" 3")

	w = create(t, path, ringbuf.V1, 16) // restarts, with another layout
	push(t, w, 4)
	if err := r.Poll(0); err != nil {
		t.Error(err)
	}
	must.OK(t, r.Poll(0))
	must.OK(t, r.Commit())
	s.expect(t, path+" ended: "+ringbuf.ErrRestarted.Error(), path+" opened v1 16", path+" 4")

	push(t, w, 5)
	must.OK(t, os.Remove(path)) // the agent continues to write
	must.OK(t, r.Check())
	must.OK(t, r.Poll(0))
	must.OK(t, r.Commit())
	s.expect(t, path+" 5")

	push(t, w, 6)
	push(t, create(t, path, ringbuf.V4, 8), 7) // another agent takes the name
	must.OK(t, r.Check())
	must.OK(t, r.Poll(0))
	s.expect(t, path+" 6", path+" ended: "+ring.ErrReplaced.Error(), path+" opened v4 8", path+" 7")
	if r.Read() != 7 || r.Fill() != 1 {
		t.Errorf("%d read, %d in the ring", r.Read(), r.Fill())
	}

	must.OK(t, os.Truncate(path, 100))
	must.OK(t, r.Check())
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
	r := ring.New(path, ringbuf.Consume, &s)
	defer r.Close()
	must.OK(t, r.Poll(1))
	ringtest.Edit(t, path, func(h *ringtest.Header) { h.ReadPos = 2 })
	must.OK(t, r.Poll(0))
	must.OK(t, r.Poll(0))
	must.OK(t, r.Commit())
	if len(s.lines) != 4 || !strings.Contains(s.lines[2], "another process consumed events") || s.lines[3] != path+" 3" {
		t.Errorf("%q", s.lines)
	}
}
