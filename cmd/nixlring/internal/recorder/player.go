// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/recording"
)

const (
	// pumpEvery is how often full rings are retried.
	pumpEvery = 5 * time.Millisecond
	// patience is how long the player waits for room in a full ring. If nothing was
	// read from the ring by then, it has no reader, and events are dropped, as an agent
	// does.
	patience = time.Second
	// maxQueued bounds the number of events that wait for room, in all rings.
	maxQueued = 1 << 20
)

// PlayerConfig configures a [Player].
type PlayerConfig struct {
	Dir   string  // directory of the rings; must exist
	Speed float64 // relative to the recording; 0 means 1
	Now   func() time.Time
}

// Played counts what was replayed so far.
type Played struct {
	Rings   int
	Starts  uint64 // number of starts and restarts of agents
	Written uint64 // events
	Dropped uint64 // events dropped because a ring was full
	Missed  uint64 // how often events may be missing in the recording
	At      time.Duration
}

// Player replays a recording.
type Player struct {
	cfg   PlayerConfig
	rec   *File
	start time.Time
	rings []*playedRing // by number of the agent
	names ringNames
	// queued is the number of events that wait for room, plus the number of restarts
	// that wait for a ring to be drained.
	queued int
	played Played
}

// NewPlayer returns a Player.
func NewPlayer(rec *File, cfg PlayerConfig) (*Player, error) {
	if cfg.Speed == 0 {
		cfg.Speed = 1
	}
	if !(cfg.Speed > 0) {
		return nil, fmt.Errorf("speed is %v: it must be more than 0", cfg.Speed)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Player{cfg: cfg, rec: rec, names: make(ringNames)}, nil
}

// Run replays the recording until its end or until ctx is done. If the recording is
// truncated or damaged, Run replays it up to there and returns an error.
func (p *Player) Run(ctx context.Context) error {
	p.start = p.cfg.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var rec recording.Record
	for {
		err := p.rec.Next(&rec)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			// Write the events that wait for room.
			return errors.Join(err, p.until(ctx, timer, p.cfg.Now(), 0))
		}
		// The events of one time are written together.
		if at := p.elapsed(&rec); at > p.played.At || p.queued > maxQueued {
			if err := p.until(ctx, timer, p.due(at), maxQueued); err != nil {
				return err
			}
		}
		p.play(&rec)
	}
}

// due returns when a record is replayed. It is capped to prevent an overflow.
func (p *Player) due(at time.Duration) time.Time {
	const never = 1e18
	return p.start.Add(time.Duration(min(float64(at)/p.cfg.Speed, never)))
}

// until pumps until due and until at most most events wait for room.
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

// play queues one record.
func (p *Player) play(rec *recording.Record) {
	p.played.At = p.elapsed(rec)
	switch rec.State {
	case recording.Opened:
		if rec.Agent == len(p.rings) {
			p.rings = append(p.rings, &playedRing{path: filepath.Join(p.cfg.Dir, p.names.add(rec.About.Name))})
			p.played.Rings++
		}
		p.rings[rec.Agent].open(rec)
		p.queued++
	case recording.Missed:
		p.played.Missed++
	case recording.Full, recording.Closed:
	default:
		p.rings[rec.Agent].add(rec.Event)
		p.queued++
	}
}

// elapsed returns the time of a record since the beginning of the recording.
func (p *Player) elapsed(rec *recording.Record) time.Duration {
	return rec.At.Sub(p.rec.Header().Start)
}

// pump pumps all rings.
func (p *Player) pump(now time.Time) error {
	for _, r := range p.rings {
		if len(r.todo) == 0 {
			continue
		}
		done, err := r.pump(now)
		p.queued -= int(done.Written + done.Dropped + done.Starts)
		p.played.Written += done.Written
		p.played.Dropped += done.Dropped
		p.played.Starts += done.Starts
		if err != nil {
			return err
		}
	}
	return nil
}

// Played returns the counts so far.
func (p *Player) Played() Played { return p.played }

// Close closes the rings. Their files stay, as those of agents do.
func (p *Player) Close() error {
	var errs []error
	for _, r := range p.rings {
		errs = append(errs, r.close())
	}
	return errors.Join(errs...)
}

// Remove closes the rings and removes their files.
func (p *Player) Remove() error {
	err := p.Close()
	for _, r := range p.rings {
		err = errors.Join(err, r.remove())
	}
	return err
}
