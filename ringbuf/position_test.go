// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

// ringOf creates a ring with events of the values 0 to n-1, and reads the first at.
func ringOf(t *testing.T, n, at int) (*Writer, *Reader) {
	t.Helper()
	w, err := Create(filepath.Join(t.TempDir(), "ring"), V4, 8)
	must.OK(t, err)
	t.Cleanup(func() { _ = w.Close() })
	for v := range n {
		must.OK(t, w.Push(NewEvent(TypeTxBytes, uint64(v))))
	}
	r, err := OpenReader(w.Path(), Consume)
	must.OK(t, err)
	t.Cleanup(func() { _ = r.Close() })
	if at > 0 {
		if _, err := r.Read(at, func(Batch) {}); err != nil {
			t.Fatal(err)
		}
	}
	return w, r
}

func TestCommitToLeavesLaterEventsUncommitted(t *testing.T) {
	w, r := ringOf(t, 6, 4)
	if _, err := r.Read(0, func(Batch) {}); err != nil {
		t.Fatal(err)
	}
	must.OK(t, r.CommitTo(4))
	if n, _ := w.Len(); n != 2 || r.Uncommitted() != 2 || r.Committed() != 4 || r.Position() != 6 {
		t.Errorf("ring holds %d, uncommitted %d, committed to %d, read to %d", n, r.Uncommitted(), r.Committed(), r.Position())
	}
	if err := r.CommitTo(7); !errors.Is(err, ErrInvalid) {
		t.Errorf("commit of unread events: %v", err)
	}
	must.OK(t, r.Commit())
	if n, _ := w.Len(); n != 0 {
		t.Errorf("ring still holds %d", n)
	}
}

func TestSkippedEventsAreNotRead(t *testing.T) {
	_, r := ringOf(t, 5, 0)
	if _, err := r.Skip(6); !errors.Is(err, ErrInvalid) {
		t.Errorf("skip beyond the pending events: %v", err)
	}
	pending, err := r.Skip(3)
	must.OK(t, err)
	if pending != 2 {
		t.Errorf("%d events are pending, want 2", pending)
	}
	if events := read(t, r); len(events) != 2 || events[0].Value != 3 {
		t.Errorf("read %v", events)
	}
}

// Nothing but the slots shows a restart at position 0.
func TestFingerprintCoversAllSlots(t *testing.T) {
	sum := func(different uint64) uint32 {
		p, w := plainRing(t, V4, 4096)
		for i := range uint64(4000) {
			value := uint64(1)
			if i == different {
				value = 2
			}
			must.OK(t, w.Push(NewEvent(TypeTxBytes, value)))
		}
		r := p.reader(t, Consume)
		for _, limit := range []int{1000, 0} { // in two passes
			_, err := r.Read(limit, func(Batch) {})
			must.OK(t, err)
		}
		got, err := r.Fingerprint(r.Position())
		must.OK(t, err)
		must.OK(t, r.Commit())
		return got
	}
	for _, slot := range []uint64{0, 999, 1000, 3999} {
		if sum(slot) == sum(4096) {
			t.Errorf("a change of slot %d doesn't change the fingerprint", slot)
		}
	}
}

func TestFingerprintDistinguishesRuns(t *testing.T) {
	w, r := ringOf(t, 5, 0)
	before, err := r.Fingerprint(5)
	must.OK(t, err)
	if again, _ := r.Fingerprint(5); again != before {
		t.Error("the same slots have two fingerprints")
	}
	if other, _ := r.Fingerprint(4); other == before {
		t.Error("other slots have the same fingerprint")
	}
	if _, err := r.Fingerprint(8); !errors.Is(err, ErrInvalid) {
		t.Errorf("fingerprint of a missing slot: %v", err)
	}
	restarted, err := Create(w.Path(), V4, 8)
	must.OK(t, err)
	defer restarted.Close()
	for v := range 5 {
		must.OK(t, restarted.Push(NewEvent(TypeRxBytes, uint64(v))))
	}
	if after, _ := r.Fingerprint(5); after == before {
		t.Error("another run has the same fingerprint")
	}
}
