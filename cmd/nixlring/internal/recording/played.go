// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// playedRing is one ring of a player, and what it is yet to be given.
type playedRing struct {
	path  string
	w     *ringbuf.Writer // nil before the first life
	todo  []task
	stuck time.Time // since when there has been no room; zero if there is
	given bool      // nobody reads: nothing is waited for
}

// task is a new life if it has a layout, else events.
type task struct {
	layout   ringbuf.Layout
	capacity int
	events   []ringbuf.Event
}

func newPlayedRing(dir, name string) *playedRing {
	return &playedRing{path: filepath.Join(dir, name)}
}

func (r *playedRing) open(rec *Record) {
	r.todo = append(r.todo, task{layout: rec.Layout, capacity: rec.Capacity})
}

func (r *playedRing) add(events []ringbuf.Event) {
	r.todo = append(r.todo, task{events: append([]ringbuf.Event(nil), events...)})
}

// pump does what can be done by now.
func (r *playedRing) pump(now time.Time) (done Played, err error) {
	for len(r.todo) > 0 {
		t := &r.todo[0]
		var over bool
		if t.layout != 0 {
			over, err = r.begin(t, now)
			if over {
				done.Lives++
			}
		} else {
			over, err = r.push(t, now, &done)
		}
		if err != nil || !over {
			return done, err
		}
		r.todo = r.todo[1:]
	}
	r.todo = nil
	return done, nil
}

// begin makes the ring, or makes it anew once it is empty: what a reader
// hasn't taken by then is gone.
func (r *playedRing) begin(t *task, now time.Time) (over bool, err error) {
	if r.w != nil {
		left, err := r.w.Len()
		if err == nil && left > 0 && r.wait(now) {
			return false, nil
		}
		if err := r.close(); err != nil {
			return false, err
		}
	}
	if err := os.MkdirAll(filepath.Dir(r.path), 0o755); err != nil {
		return false, err
	}
	r.w, err = ringbuf.Create(r.path, t.layout, t.capacity)
	r.stuck, r.given = time.Time{}, false
	return err == nil, err
}

// push writes as many events as there is room for, and drops the others only
// where nobody reads.
func (r *playedRing) push(t *task, now time.Time, done *Played) (over bool, err error) {
	if r.w == nil {
		return false, fmt.Errorf("%w: events of %s before its ring", ErrDamaged, r.path)
	}
	n, err := r.w.PushBatch(t.events)
	done.Written += uint64(n)
	t.events = t.events[n:]
	if n > 0 {
		r.stuck, r.given = time.Time{}, false
	}
	switch {
	case err != nil:
		return false, err
	case len(t.events) == 0:
		return true, nil
	case r.wait(now):
		return false, nil
	}
	done.Dropped += uint64(len(t.events))
	return true, nil
}

// wait says whether a full ring is to be waited for.
func (r *playedRing) wait(now time.Time) bool {
	if r.stuck.IsZero() {
		r.stuck = now
	}
	r.given = r.given || now.Sub(r.stuck) >= patience
	return !r.given
}

func (r *playedRing) close() error {
	if r.w == nil {
		return nil
	}
	err := r.w.Close()
	r.w = nil
	return err
}

func (r *playedRing) remove() error {
	if err := os.Remove(r.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
