// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package checkpoint

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// agent is an agent with a ring, a reader and totals.
type agent struct {
	t      testing.TB
	path   string
	writer *ringbuf.Writer
	reader *ringbuf.Reader
	tally  *tally.Agent
}

const capacity = 16

func newAgent(t testing.TB) *agent {
	t.Helper()
	a := &agent{t: t, path: filepath.Join(t.TempDir(), "agent"), tally: tally.NewAgent(shapeOf(t, tally.Config{}))}
	a.restart(capacity)
	a.open()
	return a
}

// restart restarts the agent on its ring.
func (a *agent) restart(capacity int) {
	a.t.Helper()
	w, err := ringbuf.Create(a.path, ringbuf.V4, capacity)
	must.OK(a.t, err)
	a.t.Cleanup(func() { _ = w.Close() })
	a.writer = w
}

func (a *agent) open() {
	a.t.Helper()
	r, err := ringbuf.OpenReader(a.path, ringbuf.Consume)
	must.OK(a.t, err)
	a.t.Cleanup(func() { _ = r.Close() })
	a.reader = r
}

// push pushes one event per value.
func (a *agent) push(values ...uint64) {
	a.t.Helper()
	for _, v := range values {
		must.OK(a.t, a.writer.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, v)))
	}
}

// read counts the pending events.
func (a *agent) read() {
	a.t.Helper()
	if _, err := a.reader.Read(0, a.tally.Add); err != nil {
		a.t.Fatal(err)
	}
}

func (a *agent) commit() {
	a.t.Helper()
	must.OK(a.t, a.reader.Commit())
}

func (a *agent) checkpoint() *Mark {
	a.t.Helper()
	m, err := MarkOf(a.reader, 5)
	must.OK(a.t, err)
	return &m
}

// crash discards the state of the process. Its totals are stored.
func (a *agent) crash() {
	a.t.Helper()
	must.OK(a.t, a.reader.Close())
	totals, err := shapeOf(a.t, tally.Config{}).Restore(a.tally.State())
	must.OK(a.t, err)
	a.tally = totals
}

func (a *agent) counted() int64 { return a.tally.Size(tally.Transmit).Total().Int64() }

// Each case changes the ring between a checkpoint and the next process. The next process
// commits nothing before it has stored its totals.
func TestResumeCountsEveryEventOnce(t *testing.T) {
	tests := []struct {
		name  string
		first int // events committed before those of the checkpoint
		after func(a *agent)
		want  Outcome
		total int64 // of all events, including those after the checkpoint
	}{
		{"nothing happened", 3, func(*agent) {}, Finished, 7},
		{"more was written", 3, func(a *agent) { a.push(1, 1) }, Finished, 9},
		{"the commit was made", 3, (*agent).commit, Resumed, 7},
		{"the commit was made and more was written", 3, func(a *agent) { a.commit(); a.push(1, 1) }, Resumed, 9},
		{"the first commit was not made", 0, func(a *agent) { a.push(1) }, Finished, 5},
		{"the agent restarted", 3, func(a *agent) { a.restart(capacity) }, Restarted, 7},
		{"the agent restarted and wrote", 3, func(a *agent) { a.restart(capacity); a.push(1, 1, 1, 1, 1) }, Restarted, 12},
		{"the agent restarted before the first commit", 0, func(a *agent) { a.restart(capacity) }, Restarted, 4},
		{"the agent restarted before the first commit and wrote", 0, func(a *agent) { a.restart(capacity); a.push(2, 2, 2, 2, 2) }, Restarted, 14},
		{"the agent restarted with another capacity", 3, func(a *agent) { a.restart(2 * capacity); a.push(1) }, Restarted, 8},
		{"the file was replaced", 3, func(a *agent) {
			must.OK(a.t, os.Rename(a.path, a.path+" of old"))
			a.restart(capacity)
			a.push(1)
		}, Restarted, 8},
		{"the agent restarted before the first commit with another capacity", 0, func(a *agent) {
			a.restart(2 * capacity)
			a.push(1, 1, 1, 1, 1)
		}, Restarted, 9},
		{"the file was replaced before the first commit", 0, func(a *agent) {
			must.OK(a.t, os.Rename(a.path, a.path+" of old"))
			a.restart(capacity)
			a.push(1, 1, 1, 1, 1)
		}, Restarted, 9},
		{"another process read", 3, func(a *agent) {
			a.push(1, 1)
			ringtest.Edit(a.t, a.path, func(h *ringtest.Header) { h.ReadPos = h.WritePos - 1 })
		}, ReadByOther, 8},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := newAgent(t)
			for range tt.first {
				a.push(1)
			}
			a.read()
			a.commit()
			a.push(1, 1, 1, 1)
			a.read()
			stored := a.checkpoint()
			tt.after(a)
			a.crash()
			a.open()
			committed := a.reader.Committed()
			got, err := stored.Resume(a.reader)
			if err != nil || got != tt.want {
				t.Fatalf("outcome is %v, %v, want %v", got, err, tt.want)
			}
			if got := a.reader.Committed(); got != committed {
				t.Errorf("position %d was committed", got)
			}
			a.read()
			if a.counted() != tt.total {
				t.Errorf("%d bytes are counted, want %d", a.counted(), tt.total)
			}
		})
	}
}

// The ring has wrapped between the positions of the checkpoint, so the read position 0 of a
// restarted agent is between them, too. The agent's first event equals the old event in that
// slot.
func TestRestartIsDetectedAfterTheRingHasWrapped(t *testing.T) {
	a := newAgent(t)
	for range capacity - 3 {
		a.push(1)
	}
	a.read()
	a.commit()
	a.push(1, 1, 1, 1, 1, 1) // to position 3
	a.read()
	stored := a.checkpoint()
	a.restart(capacity)
	a.push(1)
	a.crash()
	a.open()
	if got, err := stored.Resume(a.reader); got != Restarted || err != nil {
		t.Fatalf("outcome is %v, %v", got, err)
	}
	a.read()
	if want := int64(capacity - 3 + 6 + 1); a.counted() != want {
		t.Errorf("%d bytes are counted, want %d", a.counted(), want)
	}
}

// The cases of the table in [Mark.Resume]. All slots are zero, so only the positions differ.
func TestPositionsDecideHowARingIsResumed(t *testing.T) {
	for _, c := range []struct {
		capacity      int
		from, to      uint64 // of the checkpoint
		read, write   uint64 // in the ring
		want          Outcome
		next, pending int // position of the reader, and events after it
	}{
		{8, 3, 5, 5, 5, Resumed, 5, 0},
		{8, 3, 5, 5, 7, Resumed, 5, 2},
		{8, 3, 5, 3, 5, Finished, 5, 0},
		{8, 3, 5, 3, 6, Finished, 5, 1},
		{8, 3, 5, 3, 4, Restarted, 3, 1}, // too few events
		{8, 3, 5, 0, 0, Restarted, 0, 0},
		{8, 3, 5, 0, 6, Restarted, 0, 6},
		{8, 3, 5, 4, 6, ReadByOther, 5, 1},
		{8, 3, 5, 4, 5, ReadByOther, 5, 0},
		{8, 3, 5, 4, 4, ReadByOther, 4, 0}, // a lap later
		{8, 3, 5, 6, 7, ReadByOther, 6, 1},
		{8, 6, 2, 7, 3, ReadByOther, 2, 1},
		{8, 6, 2, 3, 4, ReadByOther, 3, 1},

		{8, 6, 0, 7, 0, Resumed, 0, 0}, // a commit to 0 stops at the last slot
		{8, 1, 0, 7, 2, Resumed, 0, 2},
		{8, 6, 0, 7, 7, Restarted, 7, 0}, // but the agent hasn't written that
		{8, 6, 0, 6, 2, Finished, 0, 2},
		{8, 7, 0, 7, 0, Finished, 0, 0},
		{8, 6, 0, 0, 2, Restarted, 0, 2},
		{2, 1, 0, 0, 0, Resumed, 0, 0}, // two slots are too few for one that is kept
		{2, 1, 0, 0, 1, Resumed, 0, 1},
		{2, 1, 0, 1, 0, Finished, 0, 0},

		{8, 0, 0, 0, 3, Resumed, 0, 3}, // nothing was counted
		{8, 0, 0, 7, 0, ReadByOther, 7, 1},
		{8, 0, 5, 5, 6, Resumed, 5, 1},
		{8, 0, 5, 0, 6, Finished, 5, 1},
		{8, 0, 5, 0, 4, Restarted, 0, 4},
		{8, 0, 5, 2, 6, ReadByOther, 5, 1},
	} {
		p := newPlain(c.capacity)
		p.start(t, c.capacity)
		binary.LittleEndian.PutUint64(p.memory[0:], c.write)
		binary.LittleEndian.PutUint64(p.memory[8:], c.read)
		r := p.open(t)
		m := Mark{Layout: ringbuf.V4, Capacity: uint64(c.capacity), From: c.from, To: c.to}
		if c.from == 0 {
			sum, err := r.Fingerprint(c.to)
			must.OK(t, err)
			m.Fingerprint = sum
		}
		type result struct {
			Outcome       Outcome
			Next, Pending int
		}
		outcome, err := m.Resume(r)
		must.OK(t, err)
		pending, err := r.Skip(r.Position())
		must.OK(t, err)
		if d := cmp.Diff(result{c.want, c.next, c.pending}, result{outcome, int(r.Position()), pending}); d != "" {
			t.Errorf("%+v: (-want +got)\n%s", c, d)
		}
	}
}

// The position moves after the ring was opened, and before it is resumed.
func TestForeignReadBeforeAResumeIsReported(t *testing.T) {
	for _, c := range []struct {
		opened, read uint64 // position when the ring is opened, and then
		ino          uint64 // of the checkpoint's file
		want         Outcome
	}{
		{3, 5, 0, ReadByOther}, // that of the totals
		{2, 3, 0, ReadByOther}, // that of the last commit
		{3, 4, 0, ReadByOther},
		{3, 5, 1, Restarted},
	} {
		p := newPlain(8)
		p.start(t, 8)
		binary.LittleEndian.PutUint64(p.memory[0:], 6)
		binary.LittleEndian.PutUint64(p.memory[8:], c.opened)
		r := p.open(t)
		binary.LittleEndian.PutUint64(p.memory[8:], c.read)
		m := Mark{Layout: ringbuf.V4, Capacity: 8, Ino: c.ino, From: 3, To: 5}
		if got, err := m.Resume(r); got != c.want || err != nil {
			t.Errorf("%+v: outcome %v, error %v", c, got, err)
		}
	}
}

// The checkpoint's totals already include the restart.
func TestCheckpointWithoutARingIsResumed(t *testing.T) {
	a := newAgent(t)
	a.push(1, 1)
	a.read()
	a.commit()
	a.tally.Restarted()
	a.crash()
	a.push(1)
	a.open()
	mark, err := MarkOf(nil, 5)
	must.OK(t, err)
	if d := cmp.Diff(Mark{Start: 5}, mark); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if got, err := mark.Resume(a.reader); got != Resumed || err != nil {
		t.Fatalf("outcome is %v, %v", got, err)
	}
	a.read()
	if a.counted() != 3 || a.tally.Restarts() != 1 {
		t.Errorf("%d bytes, %d restarts", a.counted(), a.tally.Restarts())
	}
}

func shapeOf(t testing.TB, cfg tally.Config) *tally.Shape {
	t.Helper()
	shape, err := tally.NewShape(cfg)
	must.OK(t, err)
	return shape
}
