// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"errors"
	"fmt"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// maxPass limits the events that one drain reads from a ring, so that a ring that fills
// as fast as it is drained doesn't delay other rings.
const maxPass = 1 << 16

// brokenWait is the time until a ring that can't be read is opened again. A ring whose agent restarts again within this time
// waits for it, too: a process can make each of its rings look like that all the time, and opening one takes many system calls.
const brokenWait = time.Second

// maxWork limits the work that the agents of one container cause in workIn: the events that are
// read from their rings, their drains, their checkpoints, and agents that are compared to make room. The unit is an event of a
// whole transfer; see [tally.Agent.Add]. 64 agents that write as fast as NIXL's defaults allow cause as much. It takes
// about a twentieth of a core, so that ten hostile containers cause no more than half. The time is short because a container
// may cause all of it in one round, for which the rings of all others wait.
const maxWork, workIn = 1_000_000, 200 * time.Millisecond

// A drain takes as long as counting drainWork events, and a checkpoint as long as counting
// saveWork events, mostly in the storage extension. In a large page, each event is workBytes; in slots that are compared
// with those that were read, compareBytes.
const drainWork, saveWork, workBytes, compareBytes = 200, 3000, 8, 32

// worked records work that a holder has caused.
func (o *owner) worked(h Holder, work int) {
	if h.Isolated() {
		o.work[h] += work
	}
}

// forgive begins another workIn. A container that has caused more work than it may causes less in the next one.
func (o *owner) forgive(now time.Time) {
	o.workAt = now
	for h, work := range o.work {
		if work > maxWork {
			o.work[h] = work - maxWork
		} else {
			delete(o.work, h)
		}
	}
}

// exhausted reports whether the rings of a holder must wait.
func (o *owner) exhausted(h Holder) bool { return len(o.work) > 0 && o.work[h] >= maxWork }

// waits reports whether an agent's ring must wait because of the others of its container. If so, it
// schedules the next drain.
func (o *owner) waits(a *agent, now time.Time) bool {
	if !o.exhausted(a.Holder) {
		return false
	}
	a.due = o.workAt.Add(workIn)
	a.wait = a.due.Sub(now)
	o.report(a, warn(notice.BudgetReached, fmt.Sprintf("agents in %v write more events, or write to more rings, than can be drained in %v "+
		"without delaying other containers, so their rings may fill up; let them record less, or set a larger NIXL_TELEMETRY_BUFFER_SIZE "+
		"for them if their rings are small", a.Holder, workIn), nil))
	return true
}

// round drains every ring that is due or has at most half of its wait left, and opens broken rings again.
// Waking up costs more than checking a ring, so rings are drained together.
func (o *owner) round(now time.Time) {
	if o.ending {
		return
	}
	o.due = now.Add(idleStep)
	for _, a := range o.visits {
		switch {
		case a.reader == nil:
			if !a.reopenAt.IsZero() && !now.Before(a.reopenAt) {
				a.reopenAt = time.Time{}
				a.source.Reopen(a.Agent, nil)
			}
		case now.Before(a.due.Add(-a.wait / 2)):
		case !o.cfg.Observe && (o.saves || a.held() == 0) && a.reader.Idle():
			// An observer also reports how full the ring is. Without a store, events are held
			// only after another consumer has prevented their commit.
			o.idle(a, now)
		case !o.waits(a, now):
			o.drain(a, now)
		}
		at := a.due
		if a.reader == nil {
			at = a.reopenAt
		}
		if !at.IsZero() && at.Before(o.due) {
			o.due = at
		}
	}
}

// idle is drain for a ring without new events.
func (o *owner) idle(a *agent, now time.Time) {
	a.fresh = 0
	o.next(a, now)
	if held := a.held(); held > 0 {
		a.tally.Found(held, a.reader.Capacity())
	}
	a.exit.drained(a.fresh, true, now)
}

// drainAll drains every ring, even if it isn't due.
func (o *owner) drainAll(now time.Time) {
	for _, a := range o.order {
		a.due = now
	}
	o.round(now)
}

// drain counts the events of one ring. Without a store, it commits them immediately. With
// a store, they stay in the ring until the totals are stored.
func (o *owner) drain(a *agent, now time.Time) {
	a.fresh, a.work = 0, drainWork
	held, compares := a.held(), a.reader.Committed() == 0 // see [ringbuf.Reader.Fingerprint]
	fill, err := a.reader.Read(maxPass, a.count)
	if compares && fill > held {
		a.work += held * a.layout.EventSize() / compareBytes
	}
	o.counted += uint64(a.fresh)
	o.worked(a.Holder, a.work)
	o.found(a, fill, now)
	if err == nil && a.exit.up == UpNo {
		a.exit.drained(a.fresh, a.reader.Idle(), now)
	}
	if err == nil && !o.saves {
		err = a.commit()
	}
	a.hold(now)
	o.next(a, now)
	if err != nil {
		o.interrupted(a, now, err)
	}
}

// count counts a batch of events, in place.
func (o *owner) count(a *agent, b ringbuf.Batch) {
	a.fresh += b.Len()
	known := len(a.tally.Series())
	a.work += a.tally.Add(b)
	for _, n := range Unknown(a.tally.Series()[known:]) {
		o.report(a, n)
	}
	if events := o.cfg.Handler.Events; events != nil {
		events(a.Agent, b)
	}
}

// Unknown returns a notice for each new series of events that aren't known.
func Unknown(series []tally.Series) (list []notice.Notice) {
	for i := range series {
		if s := &series[i]; s.Unknown() {
			list = append(list, warn(notice.EventsUnknown, fmt.Sprintf("agent reports events that this version doesn't know (%q), "+
				"and which may be important, such as a new kind of error; upgrade nixl-otel", s.Name), nil))
		}
	}
	return list
}

// next schedules the next drain.
func (o *owner) next(a *agent, now time.Time) {
	a.wait = nextWait(a.wait, a.fresh, a.reader.Capacity(), o.cfg.longestWait())
	a.due = now.Add(a.wait)
	if a.fresh == maxPass {
		a.due = now // there are more events
	}
}

// found records the fill of the ring at a drain.
func (o *owner) found(a *agent, fill int, now time.Time) {
	capacity := a.reader.Capacity()
	a.tally.Found(fill, capacity)
	if a.fresh == 0 {
		return // an observer finds the same events repeatedly
	}
	a.heard(now)
	if fill < capacity-1 {
		return
	}
	a.tally.Saturated()
	o.report(a, warn(notice.RingFull, o.fullText(a, fill), nil))
}

// fullText names the setting that keeps the ring from filling up.
func (o *owner) fullText(a *agent, fill int) string {
	capacity := a.reader.Capacity()
	if o.cfg.Observe {
		return fmt.Sprintf("ring is full (%d events) and no process consumes them, so its agent drops new events; set mode: consume", fill)
	}
	lost := fmt.Sprintf("ring was full (%d events), so its agent has most likely lost events", fill)
	slots := tally.EnoughSlots(capacity, uint64(a.tally.Dropped().Last()))
	if slots <= capacity {
		return lost + "; its buffer has the largest size, so set a shorter NIXL_TELEMETRY_RUN_INTERVAL for the agent"
	}
	return fmt.Sprintf("%s; set NIXL_TELEMETRY_BUFFER_SIZE=%d for the agent (now %d) or a shorter NIXL_TELEMETRY_RUN_INTERVAL", lost, slots, capacity)
}

// drainOut drains a ring before another one replaces it, and reports whether that has read all events. The drain may
// also close the ring.
func (o *owner) drainOut(a *agent, now time.Time) bool {
	if o.waits(a, now) {
		return false
	}
	o.drain(a, now)
	return a.fresh < maxPass
}

// interrupted handles errors of an open ring.
func (o *owner) interrupted(a *agent, now time.Time, err error) {
	isForeign := errors.Is(err, ringbuf.ErrForeignRead)
	switch {
	case isForeign:
		a.generation++ // the positions of the current save no longer apply
		a.dirty = true
		a.tally.ForeignRead()
		o.report(a, warn(notice.RingForeign, "another process consumes events of this ring, and events that it consumes first are missing from the totals; "+
			"stop NIXL's telemetry_reader, pmdanixl or similar readers, or set mode: observe", err))
	case errors.Is(err, ringbuf.ErrLapped):
		a.dirty = true
		a.tally.Missed()
		o.report(a, warn(notice.RingLapped, "events were overwritten or truncated before they could be read and are missing from the totals; "+
			"with mode: observe, set a larger NIXL_TELEMETRY_BUFFER_SIZE for the agent", err))
	case errors.Is(err, ringbuf.ErrRestarted), errors.Is(err, ringbuf.ErrShrunk):
		o.restarted(a, now, err)
	default:
		o.broken(a, now, err)
	}
}

func (o *owner) restarted(a *agent, now time.Time, err error) {
	text := "agent restarted"
	if errors.Is(err, ringbuf.ErrShrunk) {
		text = "ring file has shrunk, because its agent restarted or the file was truncated"
	}
	o.countRestart(a, notice.RingRestart, text)
	if at := a.restartedAt.Add(brokenWait); now.Before(at) {
		a.reopenAt = at
		a.source.Close(a.detach())
	} else {
		a.source.Reopen(a.Agent, a.detach())
	}
	a.restartedAt = now
	a.heard(now) // so that the agent isn't retired before its ring is open again
}

// countRestart counts and reports a restart.
func (o *owner) countRestart(a *agent, kind notice.Kind, text string) {
	a.exit.empty = time.Time{}
	a.resume, a.dirty = nil, true
	a.tally.Restarted()
	o.report(a, info(kind, text))
}

// broken closes a ring that can't be read for a reason other than a restart. If it is
// still the same ring when it is opened again, counting continues at the same position.
func (o *owner) broken(a *agent, now time.Time, err error) {
	if m, markErr := a.mark(); a.resume == nil && markErr == nil && !o.cfg.Observe {
		a.resume = &m
	}
	a.tally.Missed()
	a.source.Close(a.detach())
	a.heard(now)
	a.reopenAt = now.Add(brokenWait)
	o.report(a, warn(notice.RingBroken, fmt.Sprintf("ring can't be read; it is opened again in %v", brokenWait), err))
}
