// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"path/filepath"
	"testing"
)

// ringOf creates a ring with events of the values 0 to n-1, and reads the first at.
func ringOf(t *testing.T, n, at int) (*Writer, *Reader) {
	t.Helper()
	w, err := Create(filepath.Join(t.TempDir(), "ring"), V4, 8)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	for v := range n {
		if err := w.Push(NewEvent(TypeTxBytes, uint64(v))); err != nil {
			t.Fatal(err)
		}
	}
	r, err := OpenReader(w.Path(), Consume)
	if err != nil {
		t.Fatal(err)
	}
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
	if err := r.CommitTo(4); err != nil {
		t.Fatal(err)
	}
	if n, _ := w.Len(); n != 2 || r.Uncommitted() != 2 || r.Committed() != 4 || r.Position() != 6 {
		t.Errorf("ring holds %d, uncommitted %d, committed to %d, read to %d", n, r.Uncommitted(), r.Committed(), r.Position())
	}
	if err := r.CommitTo(7); !errors.Is(err, ErrInvalid) {
		t.Errorf("commit of unread events: %v", err)
	}
	if err := r.Commit(); err != nil {
		t.Fatal(err)
	}
	if n, _ := w.Len(); n != 0 {
		t.Errorf("ring still holds %d", n)
	}
}

func TestSkippedEventsAreNotRead(t *testing.T) {
	_, r := ringOf(t, 5, 0)
	if err := r.Skip(6); !errors.Is(err, ErrInvalid) {
		t.Errorf("skip beyond the pending events: %v", err)
	}
	if err := r.Skip(3); err != nil {
		t.Fatal(err)
	}
	var events [8]Event
	n, err := r.ReadInto(events[:])
	if err != nil || n != 2 || events[0].Value != 3 {
		t.Errorf("read %d events from value %d: %v", n, events[0].Value, err)
	}
}

func TestFingerprintDistinguishesRuns(t *testing.T) {
	w, r := ringOf(t, 5, 0)
	before, err := r.Fingerprint(0, 5)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := r.Fingerprint(0, 5); again != before {
		t.Error("the same slots have two fingerprints")
	}
	if other, _ := r.Fingerprint(0, 4); other == before {
		t.Error("other slots have the same fingerprint")
	}
	if wrapped, err := r.Fingerprint(6, 2); err != nil || wrapped == before {
		t.Errorf("fingerprint over the end: %v", err)
	}
	if _, err := r.Fingerprint(0, 8); !errors.Is(err, ErrInvalid) {
		t.Errorf("fingerprint of a missing slot: %v", err)
	}
	restarted, err := Create(w.Path(), V4, 8)
	if err != nil {
		t.Fatal(err)
	}
	defer restarted.Close()
	for v := range 5 {
		if err := restarted.Push(NewEvent(TypeRxBytes, uint64(v))); err != nil {
			t.Fatal(err)
		}
	}
	if after, _ := r.Fingerprint(0, 5); after == before {
		t.Error("another run has the same fingerprint")
	}
}
