package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/nixlenv"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// drainLoop goes round the rings until ctx ends.
func (w *Watcher) drainLoop(ctx context.Context) {
	interval := w.drainInterval
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		interval = w.pace(interval, w.round())
		timer.Reset(interval)
	}
}

// haste is how soon a ring asks to be drained again.
type haste uint8

const (
	atLeisure haste = iota
	soon            // it was more than half full
	atOnce          // and filled sooner than an agent should
)

// pace is the time until the next round: shorter as long as rings are found
// more than half full, and back to normal step by step. To look at a ring
// sixteen times in a run interval leaves an agent that fills it with each burst
// nearly all of the time until the next; to look each millisecond would cost as
// much as all the rest. It asks for a save that was put off when it is due.
func (w *Watcher) pace(interval time.Duration, h haste) time.Duration {
	switch h {
	case atOnce:
		return max(interval/4, minDrainInterval)
	case soon:
		return max(interval/4, w.drainInterval/8, minDrainInterval)
	}
	most := w.drainInterval
	if w.needed.Load() {
		most = w.putOff(w.cfg.Now())
	}
	if w.storeAtOdds() {
		most = min(most, w.drainInterval/8)
	}
	return min(interval*2, max(most, minDrainInterval))
}

// Drain goes round all open rings once.
func (w *Watcher) Drain() { w.round() }

// round is Drain that says how soon the next should be.
func (w *Watcher) round() (h haste) {
	now := w.cfg.Now()
	w.tick(now)
	unsettled := w.unsettled(now)
	for rings := *w.rings.Load(); ; rings = rings[1:] {
		rings = rings[w.idle(rings, unsettled):]
		if len(rings) == 0 {
			break
		}
		a := rings[0]
		a.mu.Lock()
		if a.reader != nil {
			h = max(h, w.drain(a, now))
		}
		a.mu.Unlock()
	}
	if w.needsSave(now) {
		w.askSave()
	}
	w.flushOld(now)
	return h
}

// idle is how many agents come before the first whose ring may have something
// new in it, or isn't what it was, or holds events that are to be settled. To
// find that out takes a fraction of a drain, and locks no agent, which would be
// most of it.
func (w *Watcher) idle(rings []*Agent, unsettled bool) (n int) {
	w.looking.Lock()
	defer w.looking.Unlock()
	var round ringbuf.Round
	round.Run(func() { // a fault ends it at the ring that is to be drained next
		for ; n < len(rings); n++ {
			r := rings[n].reader
			if r != nil && (!round.Idle(r) || unsettled && !round.Settled(r)) {
				return
			}
		}
	})
	return n
}

// drain takes what is in one ring, and says how soon it should be drained again.
// The agent is locked.
func (w *Watcher) drain(a *Agent, now time.Time) haste {
	a.counted = false
	before := a.reader.Uncommitted()
	fill, err := a.reader.Read(maxPass, a.count)
	if fill > 0 {
		w.found(a, fill, now)
	}
	if err == nil {
		a.note(a.reader.Uncommitted() - before)
		err = w.settle(a, now)
	}
	if err != nil {
		w.interrupted(a, err)
	}
	return w.hasteOf(a, fill-before, now) // what was there before waits for a save, not for a drain
}

// hasteOf judges by how much came into a ring, and when it last was so much.
func (w *Watcher) hasteOf(a *Agent, came int, now time.Time) haste {
	if came <= a.tally.Capacity()/2 || w.cfg.Mode == ringbuf.Observe {
		return atLeisure
	}
	passed := now.Sub(a.filled)
	a.filled = now
	if passed < w.drainInterval {
		return atOnce
	}
	return soon
}

// found notes what a drain saw.
func (w *Watcher) found(a *Agent, fill int, now time.Time) {
	capacity := a.reader.Capacity()
	a.tally.Found(fill, capacity)
	if !a.counted {
		return // an observer sees the same events again and again
	}
	a.lastEvent, a.idle = now, false
	if fill < capacity-1 {
		return
	}
	a.tally.Saturated()
	if a.toldFull {
		return
	}
	a.toldFull = true
	text := fmt.Sprintf("ring was full (%d events): the agent has most likely lost events; "+
		"set NIXL_TELEMETRY_BUFFER_SIZE=%d for it (now %d), or a shorter NIXL_TELEMETRY_RUN_INTERVAL",
		fill, nixlenv.EnoughSlots(capacity, uint64(a.tally.Dropped().Last())), capacity)
	if w.cfg.Mode == ringbuf.Observe {
		text = fmt.Sprintf("ring is full (%d events) and nobody takes events from it: "+
			"an observer sees no new ones; consume instead", fill)
	}
	w.reportOf(a, Notice{Kind: RingFull, Level: slog.LevelWarn, Text: text})
}

// interrupted handles what a ring can come to while it is open.
func (w *Watcher) interrupted(a *Agent, err error) {
	var foreign *ringbuf.ForeignReadError
	switch {
	case errors.As(err, &foreign):
		a.tally.ForeignRead()
		if !a.toldAlien {
			a.toldAlien = true
			w.reportOf(a, Notice{
				Kind: RingForeign, Level: slog.LevelWarn, Err: err,
				Text: "somebody else takes events from this ring, so that its totals are too low; " +
					"stop NIXL's telemetry_reader, pmdanixl or the like, or set mode: observe",
			})
		}
	case errors.Is(err, ringbuf.ErrLapped):
		a.tally.Missed()
	case errors.Is(err, ringbuf.ErrRestarted), errors.Is(err, ringbuf.ErrShrunk):
		w.lose(a)
		a.tally.Restarted(true)
		text := "agent started anew"
		if errors.Is(err, ringbuf.ErrShrunk) {
			text = "ring's file has become smaller: its agent started anew, or somebody truncated it"
		}
		w.reportOf(a, Notice{Kind: RingRestart, Level: slog.LevelInfo, Text: text})
		w.look(a.Path)
	default:
		w.lose(a)
		a.tally.Missed()
		w.reportOf(a, Notice{Kind: RingBroken, Level: slog.LevelWarn, Err: err, Text: "ring can't be read any more"})
		w.look(a.Path)
	}
}

// lose gives up an agent's ring. What was read from it and not committed can't
// be read again, so that it is to be stored soon.
func (w *Watcher) lose(a *Agent) {
	w.detach(a)
	if w.store != nil {
		a.dirty = true
		w.askSave()
	}
}
