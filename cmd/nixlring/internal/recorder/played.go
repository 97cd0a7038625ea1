// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/recording"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// playedRing is a ring of a player, with the tasks that it still has to do.
type playedRing struct {
	path   string
	w      *ringbuf.Writer // nil before the ring is created
	todo   []task
	stuck  time.Time // since when the ring has been full; zero if it isn't
	gaveUp bool      // the ring has no reader: drop events instead of waiting
}

// task is a restart of the agent if it has a layout, or else events.
type task struct {
	layout   ringbuf.Layout
	capacity int
	events   []ringbuf.Event
}

func (r *playedRing) open(rec *recording.Record) {
	r.todo = append(r.todo, task{layout: rec.Layout, capacity: rec.Capacity})
}

func (r *playedRing) add(e ringbuf.Event) {
	if last := len(r.todo) - 1; last >= 0 && r.todo[last].layout == 0 {
		r.todo[last].events = append(r.todo[last].events, e)
		return
	}
	r.todo = append(r.todo, task{events: []ringbuf.Event{e}})
}

// pump does the tasks that are possible now.
func (r *playedRing) pump(now time.Time) (done Played, err error) {
	for len(r.todo) > 0 {
		t := &r.todo[0]
		var over bool
		if t.layout != 0 {
			over, err = r.begin(t, now)
			if over {
				done.Starts++
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

// begin creates the ring. If the ring exists, it waits until a reader has drained it,
// because creating it again discards the remaining events.
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
	r.stuck, r.gaveUp = time.Time{}, false
	return err == nil, err
}

// push writes as many events as the ring has room for. It only drops the others if the ring
// has no reader.
func (r *playedRing) push(t *task, now time.Time, done *Played) (over bool, err error) {
	if r.w == nil {
		return false, fmt.Errorf("%w: events of %s before its ring", recording.ErrDamaged, r.path)
	}
	n, err := r.w.PushBatch(t.events)
	done.Written += uint64(n)
	t.events = t.events[n:]
	if n > 0 {
		r.stuck, r.gaveUp = time.Time{}, false
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

// wait reports whether to wait for room in a full ring.
func (r *playedRing) wait(now time.Time) bool {
	if r.stuck.IsZero() {
		r.stuck = now
	}
	r.gaveUp = r.gaveUp || now.Sub(r.stuck) >= patience
	return !r.gaveUp
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
