// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

// Another reader consumes any number of events at any point of a pass. No event is read twice, no event that the other reader left is
// lost, and positions stay consistent.
func TestForeignReadAtEveryPoint(t *testing.T) {
	points := []string{"before the read", "between two reads", "before the commit", "between look and swap", "after the commit"}
	for _, at := range []uint64{1, 5, 13} { // committed before, in a ring of 16
		for point, name := range points {
			for taken := uint64(1); taken <= 9; taken++ {
				if (at+taken)&15 == 0 {
					continue // looks like a restart; see [TestForeignReaderAtZero]
				}
				t.Run(fmt.Sprintf("%s/at %d/%d taken", name, at, taken), func(t *testing.T) {
					foreignReadAt(t, at, point, taken)
				})
			}
		}
	}
}

func foreignReadAt(t *testing.T, at uint64, point int, taken uint64) {
	p, w := plainRing(t, V4, 16)
	r := p.reader(t, Consume)
	for v := 100 - at; v < 100; v++ {
		fill(t, w, v, v+1)
		drain(t, r)
	}
	fill(t, w, 100, 109)
	take := func(n uint64) { // like NIXL's own reader, which takes no lock
		binary.LittleEndian.PutUint64(p.mem[8:], (binary.LittleEndian.Uint64(p.mem[8:])+n)&15)
	}
	var got []uint64
	foreign := 0
	try := func(err error) {
		t.Helper()
		if errors.Is(err, ErrForeignRead) {
			foreign++
		} else {
			must.OK(t, err)
		}
		if r.Uncommitted() > 15 || r.distance(r.committed, binary.LittleEndian.Uint64(p.mem[0:])) < r.Uncommitted() {
			t.Errorf("committed to %d, read to %d", r.Committed(), r.Position())
		}
	}
	pass := func(limit int) {
		_, err := r.Read(limit, func(b Batch) {
			for _, e := range b.Typed() {
				got = append(got, e.Value)
			}
		})
		try(err)
	}
	for i := range 5 {
		if i == point && i != 3 {
			take(min(taken, 9-uint64(r.distance(at, binary.LittleEndian.Uint64(p.mem[8:])))))
		}
		switch i {
		case 0:
			pass(3)
		case 1:
			pass(3)
		case 2:
			if point == 3 {
				take(taken)
				if done, _ := r.swap(r.next); done {
					t.Error("the commit went over another reader's position")
				}
			}
			try(r.Commit())
		}
	}
	for range 3 {
		pass(0)
		try(r.Commit())
	}
	seen := map[uint64]bool{}
	for _, v := range got {
		if seen[v] {
			t.Errorf("event %d was read twice: %d", v, got)
		}
		seen[v] = true
	}
	if !slices.IsSorted(got) {
		t.Errorf("out of order: %d", got)
	}
	if left := binary.LittleEndian.Uint64(p.mem[8:]); left != (at+9)&15 {
		t.Errorf("read position %d, want %d", left, (at+9)&15)
	}
	if want := point < 4; foreign == 0 && want {
		t.Error("the other reader was not detected")
	}
}

// When two readers consume at the same time, one can store an old position. The
// reader doesn't read committed events again, and its next commit restores the position.
func TestForeignReaderMovesBackward(t *testing.T) {
	for back := uint64(1); back < 6; back++ {
		p, w := plainRing(t, V4, 16)
		r := p.reader(t, Consume)
		fill(t, w, 1, 11)
		drain(t, r)
		fill(t, w, 11, 14)
		binary.LittleEndian.PutUint64(p.mem[8:], 10-back)
		_, err := values(r)
		if !errors.Is(err, ErrForeignRead) {
			t.Errorf("back by %d: %v", back, err)
		}
		if got := drain(t, r); !slices.Equal(got, []uint64{11, 12, 13}) {
			t.Errorf("back by %d: read %d", back, got)
		}
		if h := headerOf(w); h.ReadPos != 13 {
			t.Errorf("back by %d: read position %d", back, h.ReadPos)
		}
	}
}

// The other reader takes all events that are in the ring when a reader opens it, and the agent then
// writes beyond the end of the ring. The reader hasn't committed anything, so the position is
// one of the next lap.
func TestForeignReaderTakesALapFromANewReader(t *testing.T) {
	for _, n := range []uint64{2, 3, 7} {
		p, w := plainRing(t, V4, 8)
		fill(t, w, 1, 1+n)
		r := p.reader(t, Consume)
		binary.LittleEndian.PutUint64(p.mem[8:], n)
		fill(t, w, 1+n, 8+n)
		if _, err := values(r); !errors.Is(err, ErrForeignRead) {
			t.Errorf("%d events taken: %v", n, err)
		}
		if got := drain(t, r); !slices.Equal(got, span(1+n, 8+n)) {
			t.Errorf("%d events taken: read %d", n, got)
		}
	}
}

// The other reader's position in the new run is within the reader's last commit, but the slots
// between the two positions belong to the old run.
func TestForeignReaderReadsAfterARestart(t *testing.T) {
	p, w := plainRing(t, V4, 16)
	r := p.reader(t, Consume)
	fill(t, w, 1, 15)
	drain(t, r)
	fill(t, w, 15, 20)
	drain(t, r) // the last commit moved from 14 to 3
	w, err := NewWriter(p.mem, p, V4, 16)
	must.OK(t, err)
	fill(t, w, 101, 103)
	binary.LittleEndian.PutUint64(p.mem[8:], 1)
	if got, err := values(r); !errors.Is(err, ErrForeignRead) || len(got) != 0 {
		t.Errorf("read %d, error %v", got, err)
	}
	fill(t, w, 103, 110)
	if got := drain(t, r); !slices.Equal(got, span(102, 110)) {
		t.Errorf("read %d", got)
	}
}

// If the file hasn't changed, a slot of zeros is an event.
func TestZeroEventIsRead(t *testing.T) {
	_, w := plainRing(t, V4, 8)
	r, err := NewReader(w.mem, w.backing, Consume)
	must.OK(t, err)
	fill(t, w, 0, 1)
	if got := drain(t, r); !slices.Equal(got, []uint64{0}) {
		t.Errorf("read %d", got)
	}
}
