// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package checkpoint

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// plain is a ring's file in memory.
type plain struct {
	memory []byte
	now    time.Time
}

func (p *plain) Stat() (ringbuf.FileState, error) {
	return ringbuf.FileState{Size: int64(len(p.memory))}, nil
}

// Now advances the time, so that a reader doesn't wait at position 0.
func (p *plain) Now() time.Time {
	p.now = p.now.Add(time.Hour)
	return p.now
}

func (p *plain) Guard(fn func()) error {
	fn()
	return nil
}

// life is a ring before and after a crash of the Collector, decoded from fuzzed bytes.
type life struct {
	capacity  int
	committed int // events that were read and committed before the checkpoint
	held      int // events of the checkpoint that weren't committed
	commits   bool
	taken     int // events that another consumer takes after the crash
	restarts  bool
	after     int    // events that the agent writes after the crash
	values    []byte // of the events, repeated
}

func decodeLife(b []byte) (l life, ok bool) {
	if len(b) < 8 {
		return l, false
	}
	l = life{
		capacity: 2 << (b[0] % 8), committed: int(binary.LittleEndian.Uint16(b[1:])) % 600,
		commits: b[3]&1 != 0, restarts: b[3]&2 != 0, values: b[7:],
	}
	l.held = int(b[4]) % l.capacity
	l.after = int(b[5]) % l.capacity
	if b[3]&4 != 0 { // a run of equal length
		l.after = min(l.held, l.capacity-1)
	}
	if free := l.capacity - 1 - l.held; !l.restarts && !l.commits {
		l.after = min(l.after, free)
	}
	switch {
	case b[3]&8 == 0:
	case l.restarts:
		l.taken = int(b[6]) % (l.after + 1)
	case !l.commits:
		l.taken = int(b[6]) % (l.held + l.after + 1)
	}
	return l, true
}

// run returns the number of events that are counted in the end, and the number that should
// be. decided is false if both are possible.
func (l life) run(t *testing.T) (got, want uint64, decided bool) {
	t.Helper()
	p := &plain{memory: make([]byte, ringbuf.V4.FileSize(uint64(l.capacity)))}
	w, err := ringbuf.NewWriter(p.memory, p, ringbuf.V4, l.capacity)
	must.OK(t, err)
	var written []byte // values of the current run
	push := func(n int) int {
		for i := range n {
			v := l.values[len(written)%len(l.values)] % 4
			err := w.Push(ringbuf.NewEvent(ringbuf.TypeTxRequests, uint64(v)))
			if errors.Is(err, ringbuf.ErrFull) { // a commit to position 0 keeps a slot
				return i
			}
			must.OK(t, err)
			written = append(written, v)
		}
		return n
	}
	r, err := ringbuf.NewReader(p.memory, p, ringbuf.Consume)
	must.OK(t, err)
	totals := tally.NewAgent(shapeOf(t, tally.Config{}))
	read := func() {
		_, err := r.Read(0, totals.Add)
		must.OK(t, err)
	}
	for range l.committed {
		push(1)
		read()
		must.OK(t, r.Commit())
	}
	l.held = push(l.held)
	read()
	m, err := MarkOf(r, 0)
	must.OK(t, err)
	if l.commits {
		must.OK(t, r.Commit())
	}
	decided = true
	if old := written[l.committed:]; l.restarts {
		w, err = ringbuf.NewWriter(p.memory, p, ringbuf.V4, l.capacity)
		must.OK(t, err)
		if written = nil; len(l.values) > 1 {
			l.values = l.values[1:]
		}
		l.after = push(l.after)
		l.taken = min(l.taken, l.after)
		same := l.after >= l.held && string(written[:l.held]) == string(old)
		decided = m.From != 0 || m.To == 0 || !same
		if l.taken > 0 {
			binary.LittleEndian.PutUint64(p.memory[8:], uint64(l.taken))
			// A position between From and To looks like that of the same run.
			taken, mask := uint64(l.taken), uint64(l.capacity-1)
			decided = (taken-m.From)&mask > (m.To-m.From)&mask && (m.To != 0 || taken != mask)
		}
		want = uint64(l.committed + l.held + l.after - l.taken)
	} else {
		l.after = push(l.after)
		l.taken = min(l.taken, l.held+l.after)
		position := (m.To - uint64(l.held) + uint64(l.taken)) % uint64(l.capacity)
		if l.taken > 0 {
			binary.LittleEndian.PutUint64(p.memory[8:], position)
			decided = position != 0
		}
		want = uint64(l.committed + l.held + l.after - max(0, l.taken-l.held))
	}
	r, err = ringbuf.NewReader(p.memory, p, ringbuf.Consume)
	must.OK(t, err)
	_, err = m.Resume(r)
	must.OK(t, err)
	read()
	must.OK(t, r.Commit())
	return totals.Requests(tally.Transmit).Events, want, decided
}

// FuzzResume resumes a ring after a crash. No event is counted twice or skipped, whether the
// agent restarts or continues, and also if events are equal.
func FuzzResume(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		b := make([]byte, 8+random.IntN(16))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		if random.IntN(3) == 0 {
			b[1], b[2] = 0, 0 // the first events of a run
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l, ok := decodeLife(b)
		if !ok {
			return
		}
		if got, want, decided := l.run(t); decided && got != want {
			t.Errorf("%+v: %d events are counted, want %d", l, got, want)
		}
	})
}
