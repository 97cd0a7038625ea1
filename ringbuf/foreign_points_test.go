// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

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
