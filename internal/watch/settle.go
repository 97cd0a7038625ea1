package watch

import (
	"log/slog"
	"time"
)

// saveEvery is how long events stay uncommitted in a ring that fills slowly.
const saveEvery = time.Second

// settle decides what becomes of the events that a drain has read: without a
// store they are committed, with one they wait for a checkpoint. The agent is
// locked.
func (w *Watcher) settle(a *Agent, now time.Time) error {
	if w.store == nil {
		return a.reader.Commit()
	}
	held, capacity := a.reader.Uncommitted(), a.reader.Capacity()
	if held >= capacity/4 || held > 0 && since(w.saved.Load(), now) >= saveEvery {
		w.needed.Store(true)
	}
	tight := capacity-1-held < 2*a.burst
	if tight && held >= capacity/4 && now.Sub(a.relieved) < w.drainInterval {
		w.askSave() // it fills sooner than is expected of an agent: not to be put off
	}
	switch {
	case held < capacity/4:
		return nil
	case w.failed.Load():
	case w.storeSlow() && tight:
		w.saveSlow(a)
	default:
		return nil
	}
	return a.commitUnsaved(now)
}

// commitUnsaved commits what was read from a ring without a checkpoint of it: to
// lose events is worse than to count them without a net. The agent is locked.
func (a *Agent) commitUnsaved(now time.Time) error {
	a.turn++
	a.dirty, a.relieved = true, now
	return a.reader.Commit()
}

// unsettled says whether events that wait for a checkpoint may have to be
// settled although nothing new has come.
func (w *Watcher) unsettled(now time.Time) bool {
	return w.store != nil && (w.storeAtOdds() || since(w.saved.Load(), now) >= saveEvery)
}

// storeAtOdds says whether the store is at work, which it may be for too long,
// or has failed. Then it takes a drain to find a ring that can't wait for it.
func (w *Watcher) storeAtOdds() bool { return w.busy.Load() || w.failed.Load() }

// storeSlow says whether a save takes longer than a drain may.
func (w *Watcher) storeSlow() bool {
	return w.busy.Load() && time.Duration(w.waited.Load()) > max(w.drainInterval, leastSlow)
}

// leastSlow is how long a save may take however short the drain interval is: on
// a busy machine any few lines can take so long.
const leastSlow = DefaultRunInterval / 2

// tick tells the saver that a drain begins. A time in which nothing of this
// process ran, and no save either, counts as one drain interval.
func (w *Watcher) tick(now time.Time) {
	passed := since(w.drained.Swap(now.UnixNano()), now)
	w.waited.Add(int64(min(max(passed, 0), w.drainInterval)))
}

// note keeps in mind how many events come at once. It forgets a large burst
// after some small ones: after a pause there are several in one.
func (a *Agent) note(events int) {
	if events > 0 {
		a.burst = max(events, a.burst-a.burst/8)
	}
}

// since is the time from nanoseconds of the epoch until now.
func since(nanos int64, now time.Time) time.Duration { return time.Duration(now.UnixNano() - nanos) }

// saveSlow reports, once, that an agent's ring couldn't wait for its checkpoint.
func (w *Watcher) saveSlow(a *Agent) {
	if a.toldSlow {
		return
	}
	a.toldSlow = true
	w.report(Notice{
		Kind: StoreSlow, Level: slog.LevelWarn, Path: a.Path,
		Text: "checkpoints take longer to store than this ring has room for, so that events were committed without one: " +
			"a crash right then would lose them; set fsync: false, give the storage a faster disk, or the agent a larger NIXL_TELEMETRY_BUFFER_SIZE",
	})
}

// needsSave says whether to ask now for the save that drains have found a
// reason for.
func (w *Watcher) needsSave(now time.Time) bool {
	return w.needed.Load() && w.putOff(now) == 0 && w.needed.Swap(false)
}

// putOff is how long the next save is put off. At the ceiling each agent needs
// one per run interval, each at its own time, while a save of ten agents costs
// hardly more than one of a single agent. So they share: saves begin half a drain
// interval apart, a quarter of the run interval. That leaves the time to drain a
// ring which one burst fills, and to save it, before the next burst comes.
func (w *Watcher) putOff(now time.Time) time.Duration {
	apart, passed := w.drainInterval/2, since(w.saved.Load(), now)
	if passed < 0 { // the clock was set back
		return 0
	}
	return max(apart-passed, 0)
}
