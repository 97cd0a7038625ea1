// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// plain is a ring's file in memory. Something may happen before one of the accesses to it.
type plain struct {
	memory []byte
	ino    uint64
	now    time.Time
	left   int    // accesses before that
	happen func() // nil if nothing happens
	fault  error  // of one access
}

func newPlain(capacity int) *plain {
	return &plain{memory: make([]byte, ringbuf.V4.FileSize(uint64(capacity)))}
}

func (p *plain) Stat() (ringbuf.FileState, error) {
	return ringbuf.FileState{Size: int64(len(p.memory)), Ino: p.ino}, nil
}

// Now advances the time, so that a reader doesn't wait at position 0.
func (p *plain) Now() time.Time {
	p.now = p.now.Add(time.Hour)
	return p.now
}

func (p *plain) Guard(fn func()) error {
	if p.left--; p.left < 0 {
		p.fire()
	}
	if err := p.fault; err != nil {
		p.fault = nil
		return err
	}
	fn()
	return nil
}

// fire lets it happen, once.
func (p *plain) fire() {
	if happen := p.happen; happen != nil {
		p.happen = nil
		happen()
	}
}

// start starts an agent, and returns a function that writes events of a value.
func (p *plain) start(t *testing.T, capacity int) (push func(n int, value uint64)) {
	t.Helper()
	if size := int(ringbuf.V4.FileSize(uint64(capacity))); size > len(p.memory) {
		p.memory = append(bytes.Clone(p.memory), make([]byte, size-len(p.memory))...)
	}
	w, err := ringbuf.NewWriter(p.memory, p, ringbuf.V4, capacity)
	must.OK(t, err)
	return func(n int, value uint64) {
		for range n {
			must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, value)))
		}
	}
}

// setPositions changes the header.
func (p *plain) setPositions(write, read uint64) {
	binary.LittleEndian.PutUint64(p.memory[0:], write)
	binary.LittleEndian.PutUint64(p.memory[8:], read)
}

// count reads the pending events.
func count(t *testing.T, r *ringbuf.Reader) (n int) {
	t.Helper()
	_, err := r.Read(0, func(b ringbuf.Batch) { n += b.Len() })
	must.OK(t, err)
	return n
}

func (p *plain) open(t *testing.T) *ringbuf.Reader {
	t.Helper()
	r, err := ringbuf.NewReader(p.memory, p, ringbuf.Consume)
	must.OK(t, err)
	return r
}

// resume opens and resumes the ring. Something happens before an access of Resume, or after it.
func (p *plain) resume(t *testing.T, m *Mark, access int, happen func()) (*ringbuf.Reader, Outcome, error) {
	t.Helper()
	r := p.open(t)
	p.left, p.happen = access, happen
	outcome, err := m.Resume(r)
	p.fire()
	return r, outcome, err
}

// An agent has restarted while no Collector ran, or restarts before any access of Resume to the ring.
// It then writes as many events as the checkpoint counts from position 0.
func TestEventsThatARestartedAgentWritesDuringResumeAreNotSkipped(t *testing.T) {
	for access := range 8 {
		for _, before := range []bool{false, true} {
			p := newPlain(8)
			push := p.start(t, 8)
			push(2, 1)
			r := p.open(t)
			count(t, r)
			mark, err := MarkOf(r, 0)
			must.OK(t, err)
			if before {
				push = p.start(t, 8)
			}
			r, outcome, err := p.resume(t, &mark, access, func() {
				if !before {
					push = p.start(t, 8)
				}
				push(2, 2)
			})
			if err == nil && outcome == Resumed {
				err = r.Commit()
			}
			if !errors.Is(err, ringbuf.ErrRestarted) && outcome != Restarted {
				t.Errorf("restarted before %v, writes before access %d: %v, %v; the restart was not detected", before, access, outcome, err)
			}
		}
	}
}

// While a page can't be read, nothing shows whether an agent has restarted. The last access compares
// slots that were skipped already. After a restart, the slots may already be those of the next run.
func TestRingThatCanNotBeReadOrRestartsIsNotResumed(t *testing.T) {
	fault := errors.New("no such page")
	for access := -1; access < 3; access++ {
		p := newPlain(8)
		push := p.start(t, 8)
		r := p.open(t)
		push(2, 1)
		count(t, r)
		happen, want := func() { p.fault = fault }, fault
		if access < 0 {
			must.OK(t, r.Commit())
			happen, want = func() { p.start(t, 8)(1, 1) }, ringbuf.ErrRestarted
		}
		mark, err := MarkOf(r, 0)
		must.OK(t, err)
		if _, outcome, err := p.resume(t, &mark, max(access, 0), happen); !errors.Is(err, want) {
			t.Errorf("access %d: outcome %v, error %v, want %v", access, outcome, err, want)
		}
	}
}

// A Collector committed most of a lap without checkpoints. While the next one resumes the ring, the
// agent writes the slot before the position of the totals. They include the event that was in this
// slot a lap earlier, but not the new one. An event that is written before the first access isn't
// distinguishable from the old one.
func TestEventsThatAreWrittenDuringResumeAreNotSkipped(t *testing.T) {
	for _, c := range []struct {
		name               string
		committed, pending int // after the checkpoint, which has two events from position 3
		want               Outcome
	}{
		{"one event before the checkpoint's end", 7, 0, ReadByOther},
		{"at the checkpoint's beginning", 6, 1, Restarted},
	} {
		for access := 1; access < 8; access++ {
			p := newPlain(8)
			push := p.start(t, 8)
			r := p.open(t)
			read := func(n int) {
				push(n, 1)
				count(t, r)
			}
			read(3)
			must.OK(t, r.Commit())
			read(2)
			mark, err := MarkOf(r, 0)
			must.OK(t, err)
			must.OK(t, r.Commit())
			read(c.committed)
			must.OK(t, r.Commit())
			push(c.pending, 1)

			r, outcome, err := p.resume(t, &mark, access, func() { push(1, 1) })
			must.OK(t, err)
			pending, err := r.Skip(r.Position())
			must.OK(t, err)
			if want := c.pending + 1; outcome != c.want || pending != want {
				t.Errorf("%s, before access %d: %v with %d events left, want %v with %d", c.name, access, outcome, pending, c.want, want)
			}
		}
	}
}
