// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"slices"
	"time"
)

// queue decides which call of the store comes next. It has no goroutine and no
// clock: whoever drives it asks for the next call, makes it, and hands
// the result to done before asking again. It isn't safe for concurrent
// use.
//
// Loads come first, then saves. Forgotten keys are removed, and keys that nobody
// asked for are swept, when there is nothing else to do.
type queue struct {
	loads   []load
	saves   []save
	garbage map[string]bool // keys to remove
	index   index

	wanted   map[string]bool // keys that were loaded or saved; nil once the sweep is over
	sweepAt  time.Time
	tidyAt   time.Time // not before, because it failed
	indexAt  time.Time // the same of reading the index
	stopping bool
}

type load struct {
	key  string
	done func([]byte, error)
}

type save struct {
	ops  []Op
	done func(error)
}

const (
	// sweepBatch is small because the store may take its time over each key,
	// and nothing interrupts a batch.
	sweepBatch = 8
	// retryAfter is how long nothing is retried that nobody waits for.
	retryAfter = time.Minute
)

// newQueue returns an empty queue. Keys that nobody loads or saves within
// staleAfter from now are swept.
func newQueue(staleAfter time.Duration, now time.Time) *queue {
	return &queue{
		garbage: make(map[string]bool), wanted: make(map[string]bool),
		index:   index{keys: make(map[string]bool)},
		sweepAt: now.Add(staleAfter), tidyAt: now, indexAt: now,
	}
}

// load asks for a value; it is nil if there is none. It is to come before the
// first save of the key.
func (q *queue) load(key string, done func(value []byte, err error)) {
	q.want(key)
	q.loads = append(q.loads, load{key, done})
}

// save asks for all of ops to be applied, or none. It keeps ops and their
// values. Saves are applied in order, each by itself. done may be nil.
func (q *queue) save(ops []Op, done func(error)) {
	for _, op := range ops {
		q.want(op.Key)
		delete(q.garbage, op.Key)
	}
	q.saves = append(q.saves, save{ops, done})
}

// forget asks for a key to be removed, including what is still to be saved.
func (q *queue) forget(key string) {
	for _, s := range q.saves {
		for i := range s.ops {
			if s.ops[i].Key == key {
				s.ops[i].Value = nil
			}
		}
	}
	q.garbage[key] = true
}

// stop keeps the sweep from starting, so that the queue comes to its end.
func (q *queue) stop() { q.stopping = true }

func (q *queue) want(key string) {
	if q.wanted != nil {
		q.wanted[key] = true
	}
}

// call is one call of the store.
type call struct {
	Key string // to get
	Ops []Op   // to apply, if Key is empty; none needs no call

	load    func([]byte, error)
	save    func(error)
	removed []string // of the garbage
	tidies  bool     // nobody waits for it
}

// do makes the call.
func (c *call) do(ctx context.Context, s Store) ([]byte, error) {
	switch {
	case c.Key != "":
		return s.Get(ctx, c.Key)
	case len(c.Ops) > 0:
		return nil, s.Apply(ctx, c.Ops)
	default:
		return nil, nil
	}
}

// next returns the call to make now, or nil if there is none.
func (q *queue) next(now time.Time) *call {
	tidy := q.tidyDue(now)
	switch {
	case len(q.loads) > 0:
		l := q.loads[0]
		q.loads = slices.Delete(q.loads, 0, 1)
		if q.garbage[l.key] {
			return &call{load: l.done} // as good as removed
		}
		return &call{Key: l.key, load: l.done}
	case !q.index.read && (tidy || len(q.saves) > 0) && !now.Before(q.indexAt):
		return &call{Key: indexKey, tidies: true}
	case len(q.saves) > 0:
		s := q.saves[0]
		q.saves = slices.Delete(q.saves, 0, 1)
		return q.batch(s.ops, s.done)
	case tidy:
		return q.tidy(now)
	default:
		return nil
	}
}

// wake returns when there will be something to do without anybody asking for
// it, or the zero time.
func (q *queue) wake() (at time.Time) {
	switch {
	case len(q.garbage) > 0 || q.index.read && !q.index.stored:
		return q.tidyAt
	case q.wanted != nil && !q.stopping:
		return later(later(q.sweepAt, q.tidyAt), q.indexAt)
	default:
		return time.Time{}
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// batch is the call that applies ops, removes the garbage, and keeps the index.
func (q *queue) batch(ops []Op, done func(error)) *call {
	c := &call{save: done, tidies: done == nil}
	for key := range q.garbage {
		c.removed = append(c.removed, key)
	}
	slices.Sort(c.removed)
	clear(q.garbage)
	ops = slices.Clip(ops) // they are the caller's
	for _, key := range c.removed {
		ops = append(ops, Op{Key: key})
	}
	c.Ops = q.index.with(ops)
	return c
}

// tidyDue reports whether there is anything to do that nobody waits for.
func (q *queue) tidyDue(now time.Time) bool {
	at := q.wake()
	return !at.IsZero() && !now.Before(at)
}

// tidy removes what was forgotten and some of what is swept.
func (q *queue) tidy(now time.Time) *call {
	var ops []Op
	if q.wanted != nil && !q.stopping && q.index.read && !now.Before(q.sweepAt) {
		stale := q.index.except(q.wanted)
		for _, key := range stale[:min(len(stale), sweepBatch)] {
			ops = append(ops, Op{Key: key})
		}
		if len(stale) == 0 {
			q.wanted = nil
		}
	}
	return q.batch(ops, nil)
}

// done takes the result of a call and returns what is left to do: to tell
// whoever waits for it. That function may ask the queue for more.
func (q *queue) done(c *call, value []byte, err error, now time.Time) (tell func()) {
	switch {
	case c.load != nil:
		return func() { c.load(value, err) }
	case c.Key == indexKey && err == nil:
		q.index.load(value)
	case c.Key == indexKey:
		q.indexAt = now.Add(retryAfter)
	default:
		q.index.applied(c.Ops, err == nil)
		if err != nil {
			q.tidyAt = now.Add(retryAfter)
			q.keep(c.removed)
		}
		if c.save != nil {
			return func() { c.save(err) }
		}
	}
	return func() {}
}

// keep puts keys back that couldn't be removed, except those that are to be
// saved again by now.
func (q *queue) keep(removed []string) {
	for _, key := range removed {
		again := slices.ContainsFunc(q.saves, func(s save) bool {
			return slices.ContainsFunc(s.ops, func(op Op) bool { return op.Key == key && op.Value != nil })
		})
		if !again {
			q.garbage[key] = true
		}
	}
}
