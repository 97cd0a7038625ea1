// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

const (
	// retryEvery is how often a full ring is retried.
	retryEvery = 5 * time.Millisecond
	// readerTimeout is how long the player waits for room in a full ring. If nothing was
	// read from the ring by then, it has no reader, and events are dropped, as an agent
	// does.
	readerTimeout = time.Second
)

// Player replays a recording.
type Player struct {
	Dir   string  // directory of the rings; must exist
	Speed float64 // relative to the recording
	Now   func() time.Time
	// Check returns an error if a ring must not be created. It may be nil.
	Check func(path string) error
	// Played counts what was replayed.
	Played Played

	rings []*playedRing // by number of the agent

	unread, read bool // whether a full ring had no reader, and whether one had
}

// Played counts what was replayed so far.
type Played struct {
	Rings   int
	Starts  uint64  // number of starts and restarts of agents
	Written uint64  // events
	Dropped uint64  // events, because a ring was full
	Missed  uint64  // how often events may be missing in the recording
	Seconds float64 // time in the recording
}

// playedRing is a ring of a player.
type playedRing struct {
	path   string
	w      *ringbuf.Writer // nil before the ring is created
	unread bool            // the ring is full and has no reader: drop events instead of waiting
}

// Run replays a recording until its end or until ctx is done. If the recording is truncated or
// damaged, Run replays it up to there and returns an error.
func (p *Player) Run(ctx context.Context, file *Reader) error {
	start := p.Now()
	var rec Record
	for {
		if err := file.Next(&rec); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		p.Played.Seconds = rec.At.Sub(file.Header().Start).Seconds()
		const never = 1e18 // prevents an overflow
		due := time.Duration(min(p.Played.Seconds*1e9/p.Speed, never))
		if err := sleep(ctx, due-p.Now().Sub(start)); err != nil {
			return err
		}
		if err := p.play(ctx, &rec); err != nil {
			return err
		}
	}
}

// sleep waits until ctx is done or for some time, which can be negative.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (p *Player) play(ctx context.Context, rec *Record) error {
	switch rec.State {
	case Opened:
		if rec.Agent == len(p.rings) {
			path := filepath.Join(p.Dir, rec.About.Name)
			if slices.ContainsFunc(p.rings, func(r *playedRing) bool { return r.path == path }) {
				return fmt.Errorf("%w: two agents are named %q", ErrDamaged, rec.About.Name)
			}
			if p.Check != nil {
				if err := p.Check(path); err != nil {
					return err
				}
			}
			p.rings = append(p.rings, &playedRing{path: path})
			p.Played.Rings++
		}
		p.Played.Starts++
		return p.open(ctx, p.rings[rec.Agent], rec)
	case Missed:
		p.Played.Missed++
	case Full, Closed:
	default:
		for _, e := range rec.Events {
			if err := p.push(ctx, p.rings[rec.Agent], e); err != nil {
				return err
			}
		}
	}
	return nil
}

// open creates a ring. If it exists, open waits until a reader has drained it, because
// creating it again discards the remaining events.
func (p *Player) open(ctx context.Context, r *playedRing, rec *Record) error {
	if r.w != nil {
		err := p.wait(ctx, r, func() (bool, error) {
			left, err := r.w.Len()
			return left == 0, err
		})
		if err = errors.Join(err, r.close()); err != nil {
			return err
		}
	}
	_ = os.MkdirAll(filepath.Dir(r.path), 0o755) // if this fails, so does the next line
	var err error
	r.w, err = ringbuf.Create(r.path, rec.Layout, rec.Capacity)
	return err
}

// push writes an event, or drops it if the ring is full and has no reader.
func (p *Player) push(ctx context.Context, r *playedRing, e ringbuf.Event) error {
	written := false
	err := p.wait(ctx, r, func() (bool, error) {
		err := r.w.Push(e)
		if errors.Is(err, ringbuf.ErrFull) {
			return false, nil
		}
		written = true
		return true, err
	})
	if written {
		r.unread = false
		p.Played.Written++
	} else {
		p.Played.Dropped++
	}
	return err
}

// wait retries to do something that requires a reader of the ring, as long as the ring may have one.
func (p *Player) wait(ctx context.Context, r *playedRing, do func() (done bool, err error)) error {
	for start, first := p.Now(), true; ; first = false {
		if done, err := do(); done || err != nil {
			p.read = p.read || !first
			return err
		}
		if r.unread = r.unread || p.unread && !p.read || p.Now().Sub(start) >= readerTimeout; r.unread {
			p.unread = true
			return nil
		}
		if err := sleep(ctx, retryEvery); err != nil {
			return err
		}
	}
}

// Close closes the rings. Their files stay, as those of agents do.
func (p *Player) Close() error {
	var errs []error
	for _, r := range p.rings {
		errs = append(errs, r.close())
	}
	return errors.Join(errs...)
}

func (r *playedRing) close() error {
	if r.w == nil {
		return nil
	}
	err := r.w.Close()
	r.w = nil
	return err
}
