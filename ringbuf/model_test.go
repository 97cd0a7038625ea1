// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// FuzzOperations runs an agent, a reader and a foreign reader in any order, and
// compares the events that the reader gets with a model: every event once, in order,
// except those that the foreign reader took or that were unread at a restart.
func FuzzOperations(f *testing.F) {
	f.Add(uint8(0), []byte{0, 5, 1, 0, 2, 0})
	f.Add(uint8(0), []byte{0, 1, 1, 0, 2, 0, 0, 1, 1, 0, 2, 0, 0, 1, 1, 0, 2, 0})
	f.Add(uint8(1), []byte{0, 3, 1, 2, 5, 0, 1, 0, 2, 0})
	f.Add(uint8(2), []byte{0, 6, 1, 4, 4, 2, 1, 0, 2, 0})
	rng := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		ops := make([]byte, 200)
		for i := range ops {
			ops[i] = byte(rng.Uint32())
		}
		f.Add(byte(rng.Uint32()), ops)
	}
	f.Fuzz(func(t *testing.T, shape byte, ops []byte) {
		m := &model{
			layout: []Layout{V4, V3}[shape>>2&1],
		}
		m.plain, m.Writer = plainRing(t, m.layout, 2<<(shape&3))
		m.Reader = m.plain.reader(t, Consume)
		for ; len(ops) >= 2 && !t.Failed(); ops = ops[2:] {
			m.step(t, ops[0]%6, int(ops[1]))
		}
	})
}

type model struct {
	plain  *plain
	layout Layout
	Writer *Writer
	Reader *Reader

	value     uint64   // of the last event
	ring      []uint64 // values in the ring
	read      int      // how many of them were read
	changed   bool     // the reader hasn't detected a restart or a foreign read yet
	restarted bool     // it is a restart
}

func (m *model) step(t *testing.T, op byte, n int) {
	t.Helper()
	switch op {
	case 0:
		m.push(t, n%(m.Writer.Capacity()+2))
	case 1:
		m.take(t, n%m.Writer.Capacity())
	case 2:
		m.commit(t)
	case 3:
		m.commitSome(t, n)
	case 4:
		m.foreignRead(n)
	case 5:
		if n%4 == 0 { // restarts end sequences of other operations, so keep them rare
			m.restart(t)
		}
	}
}

// kept returns 1 if the reader keeps the slot before position 0, whose event is committed.
func (m *model) kept() int {
	if m.Reader.kept {
		return 1
	}
	return 0
}

func (m *model) push(t *testing.T, n int) {
	t.Helper()
	if m.changed {
		return // after a full lap, the reader can't distinguish the move from one backward
	}
	var events []Event
	for range n {
		m.value++
		events = append(events, NewEvent(TypeTxBytes, m.value))
	}
	fit := min(n, m.Writer.Capacity()-1-len(m.ring)-m.kept())
	if pushed, err := m.Writer.PushBatch(events); pushed != fit || err != nil {
		t.Errorf("pushed %d of %d events to a ring of %d with %d: %v", pushed, n, m.Writer.Capacity(), len(m.ring), err)
	}
	for _, e := range events[:fit] {
		m.ring = append(m.ring, e.Value)
	}
}

func (m *model) take(t *testing.T, limit int) {
	t.Helper()
	var got []uint64
	kept := m.kept()
	fill, err := m.Reader.Read(limit, func(b Batch) {
		for _, e := range b.Typed() {
			got = append(got, e.Value)
		}
	})
	if m.detected(t, err) {
		if len(got) != 0 {
			t.Errorf("a pass that failed (%v) gave %d", err, got)
		}
		return
	}
	want := m.ring[m.read:]
	if limit > 0 && len(want) > limit {
		want = want[:limit]
	}
	if fill != len(m.ring)+kept || !slices.Equal(got, want) {
		t.Errorf("read %d of %d with limit %d, want %d of %d", got, fill, limit, want, len(m.ring))
	}
	m.read += len(got)
}

func (m *model) commit(t *testing.T) {
	t.Helper()
	if m.read == 0 {
		return // Commit would check nothing
	}
	if !m.detected(t, m.Reader.Commit()) {
		m.ring, m.read = m.ring[m.read:], 0
	}
}

func (m *model) commitSome(t *testing.T, n int) {
	t.Helper()
	if m.read == 0 {
		return
	}
	n = 1 + n%m.read
	to := (m.Reader.Committed() + uint64(n+m.kept())) & m.Reader.mask
	if !m.detected(t, m.Reader.CommitTo(to)) {
		m.ring, m.read = m.ring[n:], m.read-n
	}
}

// foreignRead consumes events without a lock, like NIXL's own reader.
func (m *model) foreignRead(n int) {
	if len(m.ring) == 0 || m.changed {
		return
	}
	n = 1 + n%len(m.ring)
	to := (m.Reader.Committed() + uint64(n+m.kept())) & m.Reader.mask
	if to == 0 {
		return // looks like a restart; see [TestForeignReaderAtZero]
	}
	atomic.StoreUint64(m.Writer.read, to)
	m.ring, m.read, m.changed = m.ring[n:], max(0, m.read-n), true
}

// restart restarts the agent if a reader can detect it. For the other case, see
// [TestRestartBeforeTheFirstCommitShowsInTheEvents].
func (m *model) restart(t *testing.T) {
	t.Helper()
	if m.changed || m.Reader.Committed() == 0 && m.read == 0 {
		return
	}
	w, err := NewWriter(m.plain.mem, m.plain, m.layout, m.Writer.Capacity())
	must.OK(t, err)
	m.Writer = w
	m.ring, m.read, m.changed, m.restarted = nil, 0, true, true
	_, err = m.Reader.Read(0, func(b Batch) { t.Errorf("%d old events after a restart", b.Len()) })
	m.detected(t, err)
}

// detected reports whether another process has changed the ring, and checks that err
// is the matching error. After a restart, it opens the ring again.
func (m *model) detected(t *testing.T, err error) bool {
	t.Helper()
	switch {
	case !m.changed:
		if err != nil {
			t.Errorf("unexpected error %v", err)
		}
		return err != nil
	case m.restarted && !errors.Is(err, ErrRestarted), !m.restarted && !errors.Is(err, ErrForeignRead):
		t.Errorf("error %v, restarted: %v", err, m.restarted)
	case m.restarted:
		m.Reader = m.plain.reader(t, Consume)
	}
	m.changed, m.restarted = false, false
	return true
}
