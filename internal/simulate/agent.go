// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// ErrStopped reports that the agent has been stopped.
var ErrStopped = errors.New("simulated agent has stopped")

// Agent is one simulated NIXL agent. It is safe for concurrent use.
type Agent struct {
	cfg Config

	mu      sync.Mutex
	w       *ringbuf.Writer // nil before a life, between lives, and after the last
	stopped bool
	staging staging

	traffic *rand.Rand // for operations
	starts  *rand.Rand // for the start of a life, so that restarts don't change the traffic

	memory     []uint64 // sizes registered in this life
	operations uint64   // number of operations so far
	failed     uint64   // number of failed operations
	started    int      // number of lives
	flushes    uint64

	up      time.Duration // position on the agent's timeline, which excludes down times
	lifeEnd time.Duration // end of this life on the timeline; 0 means never
	lastAt  uint64        // microseconds since the epoch

	unread  uint64 // number of events in the ring when a later life reused it
	pending int    // number of events in the ring when the agent stopped
}

// New returns an agent that hasn't started yet.
func New(cfg Config) (*Agent, error) {
	cfg.setDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("simulate agent %q: %w", cfg.Path, err)
	}
	return &Agent{
		cfg:     cfg,
		staging: staging{journal: cfg.Journal},
		traffic: rand.New(rand.NewPCG(cfg.Seed, cfg.Stream<<1)),
		starts:  rand.New(rand.NewPCG(cfg.Seed, cfg.Stream<<1|1)),
	}, nil
}

// Path returns the path of the agent's ring.
func (a *Agent) Path() string { return a.cfg.Path }

// Start creates the agent's ring, or reuses an existing one, and registers memory. The
// events are pushed at the first flush.
func (a *Agent) Start() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped || a.w != nil {
		return fmt.Errorf("start agent %s: it has already been started", a.cfg.Path)
	}
	return a.start()
}

func (a *Agent) start() error {
	life := a.cfg.Lives[a.started%len(a.cfg.Lives)]
	if a.started > 0 {
		a.countUnread()
	}
	w, err := ringbuf.Create(a.cfg.Path, life.Layout, life.Capacity)
	if err != nil {
		return err
	}
	a.w = w
	a.started++
	a.staging.reset(life)
	if a.cfg.Journal != nil {
		a.cfg.Journal.Restarted()
	}
	a.lifeEnd = 0
	if a.cfg.RestartEvery > 0 {
		a.lifeEnd = a.up + a.cfg.RestartEvery
	}
	if err := a.register(); err != nil {
		return a.fail(err)
	}
	return nil
}

// register stages the events before the first transfer.
func (a *Agent) register() error {
	at := a.stamp(a.cfg.Now(), 0)
	a.memory = regions(a.starts, a.memory[:0])
	for _, size := range a.memory {
		if err := a.staging.record(a.w, event(ringbuf.TypeMemoryRegistered, size, at)); err != nil {
			return err
		}
	}
	if a.staging.layout != ringbuf.V1 {
		return nil
	}
	return a.staging.record(a.w, with(agentStarted, 1, at), with(peerConnected, 1, at))
}

// stamp returns the time of an event that happened ago before now, in microseconds since the
// epoch. Times never decrease.
func (a *Agent) stamp(now time.Time, ago time.Duration) uint64 {
	a.lastAt = max(a.lastAt, uint64(max(0, now.UnixMicro()-ago.Microseconds())))
	return a.lastAt
}

// Restart ends the agent's life and begins the next one with the same file.
func (a *Agent) Restart() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped {
		return ErrStopped
	}
	if err := a.endLife(); err != nil {
		return err
	}
	return a.start()
}

// Stop ends the agent permanently. Like a real agent, it doesn't remove its ring. It is
// idempotent.
func (a *Agent) Stop() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stop()
}

func (a *Agent) stop() error {
	a.stopped = true
	return a.endLife()
}

// endLife deregisters memory, and flushes unless NoFinalFlush is set.
func (a *Agent) endLife() error {
	if a.w == nil {
		return nil
	}
	at := a.stamp(a.cfg.Now(), 0)
	var err error
	for _, size := range a.memory {
		err = errors.Join(err, a.staging.record(a.w, event(ringbuf.TypeMemoryDeregistered, size, at)))
	}
	if a.cfg.NoFinalFlush {
		a.staging.discard()
	} else {
		err = errors.Join(err, a.flush())
	}
	return errors.Join(err, a.closeRing())
}

func (a *Agent) closeRing() error {
	n, err := a.w.Len()
	a.pending = n
	err = errors.Join(err, a.w.Close())
	a.w = nil
	return err
}

// fail stops an agent that can't write its ring.
func (a *Agent) fail(err error) error {
	a.stopped = true
	a.staging.discard()
	return errors.Join(err, a.closeRing())
}

func (a *Agent) flush() error {
	a.flushes++
	return a.staging.flush(a.w)
}

// countUnread counts the unread events in a ring before it is reused. It ignores errors, as
// an agent would.
func (a *Agent) countUnread() {
	r, err := ringbuf.OpenReader(a.cfg.Path, ringbuf.Observe)
	if err != nil {
		return
	}
	defer r.Close()
	_, _ = r.Read(0, func(b ringbuf.Batch) { a.unread += uint64(b.Len()) })
}
