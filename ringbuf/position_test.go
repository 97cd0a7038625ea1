// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

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

// A reader keeps a checksum while it hasn't committed. A commit and a foreign read end that.
func TestFingerprintEqualsThatOfANewReader(t *testing.T) {
	p, w := plainRing(t, V4, 8)
	r := p.reader(t, Consume)
	for what, change := range []func(){
		func() { fill(t, w, 1, 4) },
		func() { fill(t, w, 4, 6); drain(t, r) },
		func() { fill(t, w, 6, 8); binary.LittleEndian.PutUint64(p.mem[8:], 7) },
	} {
		change()
		_, _ = values(r)
		for to := range uint64(8) {
			got, err1 := r.Fingerprint(to)
			want, err2 := p.reader(t, Consume).Fingerprint(to)
			if got != want || err1 != nil || err2 != nil {
				t.Errorf("change %d: fingerprint %d is %#x, want %#x (%v, %v)", what, to, got, want, err1, err2)
			}
		}
	}
}

func TestCommitToLeavesLaterEventsUncommitted(t *testing.T) {
	w := newRing(t, V4, 8)
	push(t, w, 0, 6)
	r := open(t, w.Path(), Consume)
	read(t, r)
	must.OK(t, r.CommitTo(4))
	n, err := w.Len()
	must.OK(t, err)
	equal(t, "events in the ring, uncommitted ones, and positions",
		[]int{n, r.Uncommitted(), int(r.Committed()), int(r.Position())}, []int{2, 2, 4, 6})
	if err := r.CommitTo(7); !errors.Is(err, ErrInvalid) {
		t.Errorf("commit of unread events: %v", err)
	}
	commit(t, r)
	if n, _ := w.Len(); n != 0 {
		t.Errorf("ring still holds %d", n)
	}
}

func TestSkippedEventsAreNotRead(t *testing.T) {
	w := newRing(t, V4, 8)
	push(t, w, 0, 5)
	r := open(t, w.Path(), Consume)
	if _, err := r.Skip(6); !errors.Is(err, ErrInvalid) {
		t.Errorf("skip beyond the pending events: %v", err)
	}
	if pending, err := r.Skip(3); err != nil || pending != 2 {
		t.Errorf("%d events are pending, want 2 (%v)", pending, err)
	}
	equal(t, "events", read(t, r), samples(V4, 3, 5))
	push(t, w, 5, 7)
	if pending, err := r.Skip(7); err != nil || pending != 0 {
		t.Errorf("%d events are pending, want none (%v)", pending, err)
	}
	if _, err := r.Fingerprint(7); err != nil {
		t.Errorf("fingerprint of all slots: %v", err)
	}
	if _, err := r.Fingerprint(8); !errors.Is(err, ErrInvalid) {
		t.Errorf("fingerprint of a missing slot: %v", err)
	}
}
