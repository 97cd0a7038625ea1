// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package checkpoint

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Each case changes the ring between a checkpoint and the next process, so that not only its positions
// differ; see the next test for these. The next process commits nothing before it has stored its totals.
func TestResumeCountsEveryEventOnce(t *testing.T) {
	const capacity = 16
	restart := func(p *plain, capacity, n int, value uint64) { p.start(t, capacity)(n, value) }
	replace := func(p *plain, n int) {
		p.memory, p.ino = newPlain(capacity).memory, p.ino+1
		restart(p, capacity, n, 1)
	}
	for name, c := range map[string]struct {
		first  int // events committed before the four of the checkpoint
		change func(p *plain, push func(n int, value uint64))
		want   Outcome
		next   int // events that the next process counts
	}{
		"the first commit was not made":                               {0, func(_ *plain, push func(int, uint64)) { push(1, 1) }, Resumed, 1},
		"restarted and wrote":                                         {3, func(p *plain, _ func(int, uint64)) { restart(p, capacity, 5, 1) }, Restarted, 5},
		"restarted before the first commit and wrote":                 {0, func(p *plain, _ func(int, uint64)) { restart(p, capacity, 5, 2) }, Restarted, 5},
		"restarted with another capacity":                             {3, func(p *plain, _ func(int, uint64)) { restart(p, 2*capacity, 1, 1) }, Restarted, 1},
		"restarted before the first commit with another capacity":     {0, func(p *plain, _ func(int, uint64)) { restart(p, 2*capacity, 5, 1) }, Restarted, 5},
		"the file was replaced":                                       {3, func(p *plain, _ func(int, uint64)) { replace(p, 1) }, Restarted, 1},
		"the file was replaced before the first commit":               {0, func(p *plain, _ func(int, uint64)) { replace(p, 5) }, Restarted, 5},
		"another process read events of the checkpoint and one later": {3, func(p *plain, push func(int, uint64)) { push(2, 1); p.setPositions(9, 8) }, ReadByOther, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlain(capacity)
			push := p.start(t, capacity)
			r := p.open(t)
			push(c.first, 1)
			count(t, r)
			must.OK(t, r.Commit())
			push(4, 1)
			count(t, r)
			mark, err := MarkOf(r, 0)
			must.OK(t, err)
			c.change(p, push)
			r = p.open(t)
			committed := r.Committed()
			got, err := mark.Resume(r)
			if err != nil || got != c.want || r.Committed() != committed {
				t.Fatalf("outcome is %v, %v, want %v; %d was committed, %d before", got, err, c.want, r.Committed(), committed)
			}
			if n := count(t, r); n != c.next {
				t.Errorf("%d events are counted, want %d", n, c.next)
			}
		})
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
		{8, 3, 5, 3, 5, Resumed, 5, 0},
		{8, 3, 5, 3, 6, Resumed, 5, 1},
		{8, 3, 5, 3, 4, Restarted, 3, 1}, // too few events
		{8, 3, 5, 0, 0, Restarted, 0, 0},
		{8, 3, 5, 0, 6, Restarted, 0, 6},
		{8, 3, 5, 4, 6, ReadByOther, 5, 1},
		{8, 3, 5, 4, 5, ReadByOther, 5, 0},
		{8, 3, 5, 4, 4, ReadByOther, 4, 0}, // a lap later
		{8, 3, 5, 6, 7, ReadByOther, 6, 1},
		{8, 6, 2, 7, 3, ReadByOther, 2, 1},
		{8, 6, 2, 3, 4, ReadByOther, 3, 1},
		{8, 6, 2, 0, 2, Restarted, 0, 2}, // although 0 is between them

		{8, 6, 0, 7, 0, Resumed, 0, 0}, // a commit to 0 stops at the last slot
		{8, 1, 0, 7, 2, Resumed, 0, 2},
		{8, 6, 0, 7, 7, Restarted, 7, 0}, // but the agent hasn't written that
		{8, 6, 0, 6, 2, Resumed, 0, 2},
		{8, 7, 0, 7, 0, Resumed, 0, 0},
		{8, 6, 0, 0, 2, Restarted, 0, 2},
		{2, 1, 0, 0, 0, Resumed, 0, 0}, // two slots are too few for one that is kept
		{2, 1, 0, 0, 1, Resumed, 0, 1},
		{2, 1, 0, 1, 0, Resumed, 0, 0},

		{8, 0, 0, 0, 3, Resumed, 0, 3}, // nothing was counted
		{8, 0, 0, 7, 0, ReadByOther, 7, 1},
		{8, 0, 5, 5, 6, Resumed, 5, 1},
		{8, 0, 5, 0, 6, Resumed, 5, 1},
		{8, 0, 5, 0, 4, Restarted, 0, 4},
		{8, 0, 5, 2, 6, ReadByOther, 5, 1},
	} {
		p := newPlain(c.capacity)
		p.start(t, c.capacity)
		p.setPositions(c.write, c.read)
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
		p.setPositions(6, c.opened)
		r := p.open(t)
		p.setPositions(6, c.read)
		m := Mark{Layout: ringbuf.V4, Capacity: 8, Ino: c.ino, From: 3, To: 5}
		if got, err := m.Resume(r); got != c.want || err != nil {
			t.Errorf("%+v: outcome %v, error %v", c, got, err)
		}
	}
}

// The checkpoint's totals already include the restart.
func TestCheckpointWithoutARingIsResumed(t *testing.T) {
	p := newPlain(8)
	p.start(t, 8)
	p.setPositions(3, 2)
	mark, err := MarkOf(nil, 5)
	must.OK(t, err)
	r := p.open(t)
	outcome, err := mark.Resume(r)
	must.OK(t, err)
	if d := cmp.Diff(Mark{Start: 5}, mark) + cmp.Diff(Resumed, outcome) + cmp.Diff(uint64(2), r.Position()); d != "" {
		t.Errorf("mark, outcome and position (-want +got)\n%s", d)
	}
}
