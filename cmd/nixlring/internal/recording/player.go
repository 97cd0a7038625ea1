// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// pumpEvery is how often rings are tried again that had no room.
	pumpEvery = 5 * time.Millisecond
	// patience is how long a full ring is waited for. One that nobody has read
	// from for so long is nobody's: what doesn't fit is dropped, as an agent
	// does.
	patience = time.Second
	// maxQueued bounds the events that wait for room, in all rings.
	maxQueued = 1 << 20
)

// PlayerConfig is a recording to play back.
type PlayerConfig struct {
	Dir   string  // where the rings are made; it must exist
	Speed float64 // how much faster than it happened; 1 if 0
	Now   func() time.Time
}

// Played is what was played back so far.
type Played struct {
	Rings   int
	Lives   uint64 // rings made, and made anew
	Written uint64 // events
	Dropped uint64 // events that found no room
	Missed  uint64 // times that the recording may lack events
	At      time.Duration
}

// Player plays a recording back as rings.
type Player struct {
	cfg   PlayerConfig
	rec   *Reader
	start time.Time
	rings []*playedRing
	// queued is the number of events that wait for room, and of lives that wait
	// for a ring to be read.
	queued int
	played Played
}

// NewPlayer makes a player of a recording.
func NewPlayer(rec *Reader, cfg PlayerConfig) (*Player, error) {
	if cfg.Speed == 0 {
		cfg.Speed = 1
	}
	if !(cfg.Speed > 0) {
		return nil, fmt.Errorf("a speed of %v: it is more than 0", cfg.Speed)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Player{cfg: cfg, rec: rec}, nil
}

// Run plays the recording to its end, or until ctx ends. A recording that is
// cut or damaged is played as far as it goes, and the error says so.
func (p *Player) Run(ctx context.Context) error {
	p.start = p.cfg.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var rec Record
	for {
		err := p.rec.Next(&rec)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			// What waits for room is still to be written.
			return errors.Join(err, p.until(ctx, timer, p.cfg.Now(), 0))
		}
		if err := p.until(ctx, timer, p.due(rec.At), maxQueued); err != nil {
			return err
		}
		if err := p.play(&rec); err != nil {
			return err
		}
	}
}

// due is when something is to happen again. It is never, for a recording that
// claims to be of centuries.
func (p *Player) due(at time.Duration) time.Time {
	const never = 1e18
	return p.start.Add(time.Duration(min(float64(at)/p.cfg.Speed, never)))
}

// until pumps until a time has come and no more than most events wait.
func (p *Player) until(ctx context.Context, timer *time.Timer, due time.Time, most int) error {
	for {
		now := p.cfg.Now()
		if err := p.pump(now); err != nil {
			return err
		}
		wait := due.Sub(now)
		if wait <= 0 && p.queued <= most {
			return nil
		}
		if p.queued > 0 && (wait <= 0 || wait > pumpEvery) {
			wait = pumpEvery
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// play makes one record happen.
func (p *Player) play(rec *Record) error {
	p.played.At = rec.At
	switch rec.Op {
	case OpOpen:
		if rec.Ring == len(p.rings) {
			p.rings = append(p.rings, newPlayedRing(p.cfg.Dir, rec.Name))
			p.played.Rings++
		}
		p.rings[rec.Ring].open(rec)
		p.queued++
	case OpEvents:
		p.rings[rec.Ring].add(rec.Events)
		p.queued += len(rec.Events)
	case OpMissed:
		p.played.Missed++
	}
	return p.pump(p.cfg.Now())
}

// pump lets each ring do what it can by now.
func (p *Player) pump(now time.Time) error {
	for _, r := range p.rings {
		if len(r.todo) == 0 {
			continue
		}
		done, err := r.pump(now)
		p.queued -= int(done.Written + done.Dropped + done.Lives)
		p.played.Written += done.Written
		p.played.Dropped += done.Dropped
		p.played.Lives += done.Lives
		if err != nil {
			return err
		}
	}
	return nil
}

// Played is what was played back so far.
func (p *Player) Played() Played { return p.played }

// Close leaves the rings, as agents do.
func (p *Player) Close() error {
	var errs []error
	for _, r := range p.rings {
		errs = append(errs, r.close())
	}
	return errors.Join(errs...)
}

// Remove closes the rings and deletes them.
func (p *Player) Remove() error {
	err := p.Close()
	for _, r := range p.rings {
		err = errors.Join(err, r.remove())
	}
	return err
}
