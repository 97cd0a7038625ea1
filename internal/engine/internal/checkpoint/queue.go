// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"
)

// Storage stores checkpoints. It must survive a crash of the process, but
// not of the machine. Its calls may be slow, fail or hang. A [Saver] makes one call at a
// time.
type Storage interface {
	// Get returns the value of a key, or nil if there is none.
	Get(ctx context.Context, key string) ([]byte, error)
	// Apply applies all of ops, or none.
	Apply(ctx context.Context, ops []Op) error
}

// Op stores a value, or removes the key if the value is nil.
type Op struct {
	Key   string
	Value []byte
}

// Queue determines the next call of the storage extension. It has no goroutine and no clock: the
// caller gets a call from Next, makes it, and passes the result to Done before the next
// one. It is not safe for concurrent use.
//
// Loads come first, then saves. When there is nothing else to do, the queue removes
// forgotten keys and sweeps keys that weren't used.
type Queue struct {
	loads   []load
	saves   []save
	garbage map[string]bool // keys to remove
	index   index

	wanted   map[string]bool // keys that were loaded or saved; nil once the sweep is done
	sweepAt  time.Time
	tidyAt   time.Time // when to retry removing keys after a failure
	indexAt  time.Time // when to retry reading the index after a failure
	listed   bool      // the index is needed now
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
	// sweepBatch is small because the storage may be slow for each key, and a batch
	// can't be interrupted.
	sweepBatch = 8
	// retryAfter is the time until a failed background call is retried.
	retryAfter = time.Minute
)

// NewQueue returns an empty queue. It sweeps keys that aren't loaded or saved within
// staleAfter.
func NewQueue(staleAfter time.Duration, now time.Time) *Queue {
	return &Queue{
		garbage: make(map[string]bool), wanted: make(map[string]bool),
		index:   index{keys: make(map[string]bool)},
		sweepAt: now.Add(staleAfter), tidyAt: now, indexAt: now,
	}
}

// Load requests a value, which is nil if there is none. It must come before the first save
// of the key.
func (q *Queue) Load(key string, done func(value []byte, err error)) {
	q.want(key)
	q.loads = append(q.loads, load{key, done})
}

// Save requests that all of ops are applied atomically. It retains ops and their values.
// Saves are applied one by one, in order. done may be nil.
func (q *Queue) Save(ops []Op, done func(error)) {
	for _, op := range ops {
		q.want(op.Key)
		delete(q.garbage, op.Key)
	}
	q.saves = append(q.saves, save{ops, done})
}

// Forget requests the removal of a key in the next batch. At most one save may be queued, so
// that no later one stores the key again.
func (q *Queue) Forget(key string) { q.garbage[key] = true }

// stored reports whether the store may have a key, if the index was read.
func (q *Queue) stored(key string) (stored, known bool) {
	q.listed = true
	return q.index.keys[key] && !q.garbage[key], q.index.read
}

// Stop prevents further sweeps, so that the queue becomes empty.
func (q *Queue) Stop() { q.stopping = true }

func (q *Queue) want(key string) {
	if q.wanted != nil {
		q.wanted[key] = true
	}
}

// Call is one call of the storage extension.
type Call struct {
	Key string // to get
	Ops []Op   // to apply if Key is empty; may be empty

	load    func([]byte, error)
	save    func(error)
	removed []string // keys taken from garbage
	tidies  bool     // whether it is a background call
}

// Do makes the call.
func (c *Call) Do(ctx context.Context, s Storage) ([]byte, error) {
	switch {
	case c.Key != "":
		return s.Get(ctx, c.Key)
	case len(c.Ops) > 0:
		return nil, s.Apply(ctx, c.Ops)
	default:
		return nil, nil
	}
}

// Next returns the call to make now, or nil if there is none.
func (q *Queue) Next(now time.Time) *Call {
	tidy := q.tidyDue(now)
	switch {
	case len(q.loads) > 0:
		l := q.loads[0]
		q.loads = slices.Delete(q.loads, 0, 1)
		return &Call{Key: l.key, load: l.done}
	case !q.index.read && (tidy || q.listed || len(q.saves) > 0) && !now.Before(q.indexAt):
		return &Call{Key: indexKey, tidies: true}
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

// Wake returns the time of the next background call, or the zero time.
func (q *Queue) Wake() (at time.Time) {
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

// batch returns the call that applies ops, removes the garbage, and updates the index.
func (q *Queue) batch(ops []Op, done func(error)) *Call {
	c := &Call{save: done, tidies: done == nil}
	for key := range q.garbage {
		c.removed = append(c.removed, key)
	}
	slices.Sort(c.removed)
	clear(q.garbage)
	ops = slices.Clip(ops) // don't overwrite the caller's array
	for _, key := range c.removed {
		ops = append(ops, Op{Key: key})
	}
	c.Ops = q.index.with(ops)
	return c
}

// tidyDue reports whether a background call is due.
func (q *Queue) tidyDue(now time.Time) bool {
	at := q.Wake()
	return !at.IsZero() && !now.Before(at)
}

// tidy removes forgotten keys and a batch of unused keys.
func (q *Queue) tidy(now time.Time) *Call {
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

// Done records the result of a call, and returns the callback to run. The callback may
// add requests to the queue.
func (q *Queue) Done(c *Call, value []byte, err error, now time.Time) (callback func()) {
	switch {
	case c.load != nil:
		if q.garbage[c.Key] {
			value = nil // about to be removed
		}
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

// keep restores garbage after a failed removal, except keys with a newer save.
func (q *Queue) keep(removed []string) {
	for _, key := range removed {
		again := slices.ContainsFunc(q.saves, func(s save) bool {
			return slices.ContainsFunc(s.ops, func(op Op) bool { return op.Key == key && op.Value != nil })
		})
		if !again {
			q.garbage[key] = true
		}
	}
}

// Key returns the key of an agent's checkpoint. All keys that are passed to a [Saver] must
// come from it.
func Key(path string) string { return keyPrefix + path }

const (
	keyPrefix = "agent:"
	// A storage extension can't list its keys, so their paths are stored under this key.
	indexKey       = "agents"
	indexSeparator = "\x00" // paths don't contain NUL
)

func path(key string) string { return strings.TrimPrefix(key, keyPrefix) }

// index lists the keys in the storage extension, which can't list them.
type index struct {
	keys   map[string]bool // complete; some keys may no longer exist
	read   bool            // whether keys includes those of earlier processes
	stored bool            // whether the stored list equals keys
}

// load adds the keys that an earlier process stored.
func (x *index) load(value []byte) {
	listed := 0
	for p := range strings.SplitSeq(string(value), indexSeparator) {
		if p != "" {
			x.keys[Key(p)] = true
			listed++
		}
	}
	x.read, x.stored = true, listed == len(x.keys)
}

// with returns ops, with another op that stores the index if ops change it. It doesn't
// overwrite an index that wasn't read.
func (x *index) with(ops []Op) []Op {
	changes := slices.ContainsFunc(ops, func(op Op) bool { return x.keys[op.Key] != (op.Value != nil) })
	if !x.read || x.stored && !changes {
		return ops
	}
	after := maps.Clone(x.keys)
	for _, op := range ops {
		if op.Value != nil {
			after[op.Key] = true
		} else {
			delete(after, op.Key)
		}
	}
	var paths []string
	for key := range after {
		paths = append(paths, path(key))
	}
	slices.Sort(paths)
	return append(slices.Clip(ops), Op{Key: indexKey, Value: []byte(strings.Join(paths, indexSeparator))})
}

// applied records the result of a batch. A failed batch may have been applied, so its keys
// stay in the index.
func (x *index) applied(ops []Op, ok bool) {
	for _, op := range ops {
		switch {
		case op.Key == indexKey:
			x.stored = true
		case op.Value != nil:
			x.keys[op.Key] = true
		case ok:
			delete(x.keys, op.Key)
		}
	}
	x.stored = x.stored && ok
}

// except returns the keys that aren't in known, in order.
func (x *index) except(known map[string]bool) []string {
	var list []string
	for key := range x.keys {
		if !known[key] {
			list = append(list, key)
		}
	}
	slices.Sort(list)
	return list
}
