// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"log/slog"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/notice"
)

const (
	// saveEvery is how long events stay uncommitted in a ring that fills slowly.
	saveEvery = time.Second
	// slowSave is how long a save may take before rings that can't wait for it
	// are committed without. It is counted in the owner's time: if the process
	// doesn't run, neither does the save.
	slowSave = 50 * time.Millisecond
	// hungSave is when the store is taken to hang.
	hungSave = 5 * time.Second
)

// batch is a save that is under way.
type batch struct {
	ops      []checkpoint.Op
	tickets  []ticket
	collects []*collect // answered once the batch is stored
	began    time.Time
	waited   time.Duration // in steps, each counted as slowSave/4 at most
	reported bool          // that it takes too long
}

// ticket is a position to commit once the totals that include it are stored. It
// applies only while the agent's generation is the same.
type ticket struct {
	agent      *agent
	generation uint64
	to         uint64
}

// saved is the answer to a saveEffect.
type saved struct {
	batch *batch
	err   error
}

func (m saved) apply(o *owner, now time.Time) {
	if m.batch != o.batch {
		return
	}
	o.batch = nil
	if o.failing && m.err == nil {
		o.do(reportEffect{info(notice.StoreRecovered, "checkpoints can be stored again")})
	}
	o.failing = m.err != nil
	if m.err != nil {
		o.retryAt = now.Add(saveEvery)
		for _, t := range m.batch.tickets {
			t.agent.dirty = true
		}
		o.storeFailed(m.err)
	} else {
		for _, t := range m.batch.tickets {
			o.commit(t, now)
		}
	}
	for _, c := range m.batch.collects {
		o.answer(c, m.err == nil)
	}
}

// commit moves a position whose totals are stored.
func (o *owner) commit(t ticket, now time.Time) {
	a := t.agent
	if a.reader == nil || a.generation != t.generation {
		return
	}
	a.generation++
	a.heldSince = time.Time{}
	err := a.reader.CommitTo(t.to)
	a.hold(now)
	if err != nil {
		o.interrupted(a, now, err)
	}
}

func (o *owner) storeFailed(err error) {
	o.do(reportEffect{notice.Notice{
		Kind: notice.StoreFailed, Level: slog.LevelError, Err: err,
		Text: "checkpoints can't be stored; counting continues, but a crash may lose events or count them twice; check the storage extension",
	}})
}

// saveDue begins a save if there is a reason to, and commits without one where a
// ring can't wait.
func (o *owner) saveDue(now time.Time) {
	if !o.saves {
		return
	}
	if o.batch != nil {
		o.batch.waited += min(now.Sub(o.last), slowSave/4)
		o.hangs(now)
	} else if o.needsSave(now) {
		o.begin(now)
	}
	if o.failing || o.batch != nil && o.batch.waited >= slowSave {
		o.relieve(now)
	}
}

// needsSave reports whether an agent's events should not wait any longer.
func (o *owner) needsSave(now time.Time) bool {
	if o.failing && now.Before(o.retryAt) {
		return false
	}
	if len(o.waiting) > 0 {
		return true
	}
	for _, a := range o.order {
		held := a.held()
		switch {
		case held > 0 && (held >= a.reader.Capacity()/4 || now.Sub(a.heldSince) >= saveEvery), a.dirty:
			return true
		}
	}
	return false
}

// begin stores the totals of agents that have changed, in one batch: those that
// the oldest waiting collection takes next, or any.
func (o *owner) begin(now time.Time) {
	b := &batch{began: now}
	list := o.order
	var c *collect
	if len(o.waiting) > 0 {
		c = o.waiting[0]
		list = o.slice(c, now)
		if c.complete {
			o.waiting, b.collects = o.waiting[1:], []*collect{c}
		}
	}
	for _, a := range list {
		if (a.dirty || a.held() > 0) && len(b.ops) < maxSlice {
			o.add(b, a, now)
		}
		if c != nil {
			o.snapshot(c, a, now)
		}
	}
	if len(b.ops) > 0 {
		o.batch = b
		o.do(saveEffect{b})
		return
	}
	for _, c := range b.collects {
		o.answer(c, true)
	}
}

// add adds the checkpoint of an agent to a batch.
func (o *owner) add(b *batch, a *agent, now time.Time) {
	m, err := o.mark(a, now)
	if err != nil { // the ring is no longer what was read
		o.interrupted(a, now, err)
		if m, err = o.mark(a, now); err != nil {
			return
		}
	}
	b.ops = append(b.ops, checkpoint.Op{Key: checkpoint.Key(a.ID), Value: checkpoint.Append(nil, m, a.tally)})
	b.tickets = append(b.tickets, ticket{agent: a, generation: a.generation, to: m.To})
	a.dirty = false
}

// relieve commits, without a checkpoint, the rings that have no room left for
// what their agents may write: to lose events is worse than to count them
// without crash safety.
func (o *owner) relieve(now time.Time) {
	for _, a := range o.order {
		held := a.held()
		if held == 0 {
			continue
		}
		capacity := a.reader.Capacity()
		tight := o.failing || capacity-1-held < 2*a.pace.burst
		if held < capacity/4 || !tight {
			continue
		}
		if !o.failing {
			o.report(a, warn(notice.StoreSlow, "checkpoints take longer to store than this ring has room for, so events were committed without one: "+
				"a crash right now would lose them; set fsync: false, use a faster disk, or give the agent a larger NIXL_TELEMETRY_BUFFER_SIZE", nil))
		}
		a.dirty = true
		err := a.commit()
		a.hold(now)
		if err != nil {
			o.interrupted(a, now, err)
		}
	}
}

// hangs reports a store that hangs, and answers the collections that wait for
// it.
func (o *owner) hangs(now time.Time) {
	b := o.batch
	if b.reported || now.Sub(b.began) < hungSave {
		return
	}
	b.reported = true
	o.do(reportEffect{notice.Notice{
		Kind: notice.StoreHangs, Level: slog.LevelError,
		Text: "checkpoint isn't stored after " + hungSave.String() +
			"; counting continues, but a crash may lose events or count them twice; check the storage extension",
	}})
}
