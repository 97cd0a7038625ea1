// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"time"
)

// Interval advances the agent by one run interval: it performs the operations of the interval,
// and flushes. In the interval after the end of a life, the agent only restarts.
func (a *Agent) Interval() error { return a.Tick(a.cfg.RunInterval) }

// Tick advances the agent by a given time, and flushes. Operations beyond the number for one run
// interval are performed only if their events fit in staging and in an empty ring; the rest is
// left for the next Tick.
func (a *Agent) Tick(elapsed time.Duration) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped {
		return ErrStopped
	}
	if a.w == nil {
		return a.start()
	}
	if err := a.operate(elapsed); err != nil {
		return a.fail(err)
	}
	if err := a.flush(); err != nil {
		return a.fail(err)
	}
	if a.lifeEnd > 0 && a.up >= a.lifeEnd && a.operations == a.cfg.operationsBy(a.up) && !a.over() {
		return a.endLife()
	}
	return nil
}

// operate performs the operations of a time span.
func (a *Agent) operate(elapsed time.Duration) error {
	a.up += elapsed
	if a.lifeEnd > 0 {
		a.up = min(a.up, a.lifeEnd)
	}
	if a.cfg.Duration > 0 {
		a.up = min(a.up, a.cfg.Duration)
	}
	now, due := a.cfg.Now(), a.cfg.operationsBy(a.up)
	normal := a.operations + uint64(a.cfg.RunInterval.Seconds()*a.cfg.Rate) + 1
	for a.operations < due {
		if a.operations >= normal && !a.staging.hasRoom() {
			return nil
		}
		a.operations++
		done := a.cfg.doneAt(a.operations)
		op := a.cfg.Traffic.draw(a.traffic, done)
		if op.failed {
			a.failed++
		}
		at := a.stamp(now, a.up-done)
		if err := a.staging.transfer(a.w, &op, at); err != nil {
			return err
		}
	}
	return nil
}

// Done reports whether the agent has reached its duration or its number of operations.
func (a *Agent) Done() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.over()
}

func (a *Agent) over() bool {
	if a.stopped || a.cfg.Operations > 0 && a.operations >= a.cfg.Operations {
		return true
	}
	return a.cfg.Duration > 0 && a.up >= a.cfg.Duration && a.operations == a.cfg.operationsBy(a.up)
}

// Run starts the agent unless it has started, runs it in real time until it is done or ctx ends,
// and then stops it. The first interval begins after delay, which spreads the flushes of a
// fleet.
//
// Like NIXL's timer, Run waits a full run interval after each flush, so that a reader has at
// least this time to drain the ring.
func (a *Agent) Run(ctx context.Context, delay time.Duration) error {
	a.mu.Lock()
	if a.w == nil && !a.stopped {
		if err := a.start(); err != nil {
			a.mu.Unlock()
			return err
		}
	}
	a.mu.Unlock()
	last := a.cfg.Now().Add(delay)
	timer := time.NewTimer(delay + a.cfg.RunInterval)
	defer timer.Stop()
	for !a.Done() {
		select {
		case <-ctx.Done():
			return a.stopAfter(a.cfg.Now().Sub(last))
		case <-timer.C:
		}
		now := a.cfg.Now()
		if err := a.Tick(now.Sub(last)); err != nil {
			return err
		}
		last = now
		timer.Reset(a.cfg.RunInterval)
	}
	return a.Stop()
}

// stopAfter stops the agent in the middle of an interval.
func (a *Agent) stopAfter(elapsed time.Duration) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.w != nil && elapsed > 0 {
		if err := a.operate(elapsed); err != nil {
			return a.fail(err)
		}
	}
	return a.stop()
}
