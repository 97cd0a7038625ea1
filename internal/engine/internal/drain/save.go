// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"log/slog"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/notice"
)

const (
	// saveEvery is the maximum time that events stay uncommitted in a ring that fills
	// slowly.
	saveEvery = time.Second
	// slowSave is the duration of a save after which rings that can't wait are
	// committed without a checkpoint. Only time during which the process runs counts.
	slowSave = 50 * time.Millisecond
	// hungSave is the duration of a save after which the store counts as hanging.
	hungSave = checkpoint.LoadWait
)

// batch is a save in progress.
type batch struct {
	tickets  []ticket
	ops      []checkpoint.Op
	collects []*collect // answered once the batch is stored
	began    time.Time
	waited   time.Duration // sum over the steps, at most slowSave/4 for each
	reported bool          // whether it was reported that the store hangs
}

// ticket is a position to commit once the totals up to it are stored. It is valid only
// while the agent's generation is the same.
type ticket struct {
	agent      *agent
	generation uint64
	to         uint64
}

// saved is the answer to env.save: the result of the current save.
type saved struct{ err error }

func (m saved) apply(o *owner, now time.Time) {
	b := o.batch
	o.batch = nil
	if o.failing && m.err == nil {
		o.env.report(info(notice.StoreRecovered, "checkpoints can be stored again"))
	}
	o.failing = m.err != nil
	if m.err != nil {
		o.retryAt = now.Add(saveEvery)
		o.pages.Failed(b.ops)
		for _, t := range b.tickets {
			t.agent.dirty = true
		}
		o.storeFailed(m.err)
	} else {
		for _, t := range b.tickets {
			o.commit(t, now)
		}
	}
	for _, c := range b.collects {
		o.answer(c, m.err == nil)
	}
}

// commit commits a position whose totals are stored.
func (o *owner) commit(t ticket, now time.Time) {
	a := t.agent
	if a.reader == nil || a.generation != t.generation {
		return
	}
	a.generation++
	a.heldSince = time.Time{}
	// At position 0, the stored position doesn't distinguish this run from the next one.
	a.dirty = a.dirty || a.reader.Committed() == 0 && t.to != 0
	err := a.reader.CommitTo(t.to)
	a.hold(now)
	if err != nil {
		o.interrupted(a, now, err)
	}
}

func (o *owner) storeFailed(err error) {
	o.env.report(notice.Notice{
		Kind: notice.StoreFailed, Level: slog.LevelError, Err: err,
		Text: "checkpoints can't be stored; counting continues, but a crash may lose events or count them twice; check the storage extension",
	})
}

// saveDue begins a save if one is needed, and commits rings that can't wait for it.
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

// needsSave reports whether an agent's totals must be stored now.
func (o *owner) needsSave(now time.Time) bool {
	if o.failing && now.Before(o.retryAt) {
		return false
	}
	if len(o.waiting) > 0 || o.pages.Changed() || !o.stopBy.IsZero() {
		return true
	}
	for _, a := range o.order {
		held := a.held()
		if a.dirty || held > 0 && (held >= a.reader.Capacity()/4 || now.Sub(a.heldSince) >= saveEvery) {
			if !o.exhausted(a.Holder) {
				return true
			}
		}
	}
	return false
}

// begin stores the changed totals of agents in one batch: the next agents of the oldest
// waiting collection; without a collection, those that follow the last save.
func (o *owner) begin(now time.Time) {
	b := &batch{began: now}
	var c *collect
	var list []*agent
	if len(o.waiting) > 0 {
		c = o.waiting[0]
		list = o.slice(c, now)
		if c.complete {
			o.waiting, b.collects = o.waiting[1:], []*collect{c}
		}
	} else {
		at := o.after(o.lastSaved)
		list = slices.Concat(o.order[at:], o.order[:at])
	}
	for _, a := range list {
		n := len(b.tickets)
		if a.unsaved() && (n < maxSlice || b.tickets[n-1].agent.ID == a.ID) {
			o.put(b, a, now)
		}
		if c != nil {
			o.snapshot(c, a, now)
		}
	}
	if n := len(b.tickets); n > 0 && c == nil {
		o.lastSaved = b.tickets[n-1].agent
	}
	if o.pages.Changed() {
		o.batch = b
		b.ops = o.pages.Ops()
		o.charge(b)
		o.env.save(b, b.ops)
		return
	}
	for _, c := range b.collects {
		o.answer(c, true)
	}
}

// put adds the checkpoint of an agent to a batch.
func (o *owner) put(b *batch, a *agent, now time.Time) {
	m, err := o.write(a)
	if err != nil { // the ring has changed since it was read
		o.interrupted(a, now, err)
		if m, err = o.write(a); err != nil {
			return
		}
	}
	b.tickets = append(b.tickets, ticket{agent: a, generation: a.generation, to: m.To})
	a.dirty = false
}

// write replaces the checkpoint of an agent, which isn't stored before the next save.
func (o *owner) write(a *agent) (checkpoint.Mark, error) {
	m, err := a.mark()
	if err != nil || !o.saves {
		return m, err
	}
	e := &checkpoint.Entry{ID: a.entryID(), Mark: m, Name: a.Name, Attributes: checkpoint.AttributesOf(a.stream), Totals: a.tally.State()}
	if !a.ended.IsZero() {
		e.Ended, e.Mark.Layout = a.ended.UnixNano(), a.layout
	}
	o.pages.Put(e)
	return m, nil
}

// charge records the work of a save: its agents share that of their pages.
func (o *owner) charge(b *batch) {
	keys, size, agents := checkpoint.Keys(), make(map[string]int), make(map[string]int)
	for _, op := range b.ops {
		size[op.Key] = len(op.Value)
	}
	for _, t := range b.tickets {
		agents[keys[t.agent.page]]++
	}
	for _, t := range b.tickets {
		key := keys[t.agent.page]
		o.worked(t.agent.Holder, max(saveWork, size[key]/workBytes/agents[key]))
	}
}

// mark returns the position of the agent's totals in its ring.
func (a *agent) mark() (checkpoint.Mark, error) {
	if a.resume != nil {
		m := *a.resume
		m.Start = a.start.UnixNano()
		return m, nil
	}
	return checkpoint.MarkOf(a.reader, a.start.UnixNano())
}

// relieve commits rings that may fill up before the save ends, without a checkpoint.
// Losing events is worse than counting them without crash safety.
func (o *owner) relieve(now time.Time) {
	for _, a := range o.order {
		held := a.held()
		if held == 0 {
			continue
		}
		if capacity := a.reader.Capacity(); held < capacity/4 || !o.failing && held < capacity/2 {
			continue
		}
		if !o.failing {
			o.report(a, warn(notice.StoreSlow, "ring was about to fill up before its checkpoint was stored, so events were committed without a checkpoint; "+
				"a crash at this moment would lose them; set fsync: false, use a faster disk, or set a larger NIXL_TELEMETRY_BUFFER_SIZE for the agent", nil))
		}
		a.dirty = true
		err := a.commit()
		a.hold(now)
		if err != nil {
			o.interrupted(a, now, err)
		}
	}
}

// hangs reports a store that hangs. answerDue then answers the waiting collections.
func (o *owner) hangs(now time.Time) {
	b := o.batch
	if b.reported || now.Sub(b.began) < hungSave {
		return
	}
	b.reported = true
	o.env.report(notice.Notice{
		Kind: notice.StoreHangs, Level: slog.LevelError,
		Text: "checkpoint was not stored within " + hungSave.String() +
			"; counting continues, but a crash may lose events or count them twice; check the storage extension",
	})
}
