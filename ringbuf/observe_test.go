// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

func TestObserverCopiesALargeRingInBatches(t *testing.T) {
	eachLayout(t, func(t *testing.T, l Layout) {
		w := newRing(t, l, 8192)
		c := open(t, w.Path(), Consume)
		advance(t, w, c, 5000)
		o := open(t, w.Path(), Observe)
		push(t, w, 0, 8191)
		batches := 0
		var got []Event
		_, err := o.Read(0, func(b Batch) {
			batches++
			if len(b.slots) > len(buffer{})*8 {
				t.Errorf("a batch of %d events", b.Len())
			}
			for i := range b.Len() {
				got = append(got, b.Event(i))
			}
		})
		if err != nil || batches < 3 {
			t.Errorf("%d batches, error %v", batches, err)
		}
		equal(t, "events", got, samples(l, 0, 8191))
	})
}

// While an observer processes its copy, consumer and agent continue. When the agent
// overwrites events that weren't copied yet, the observer skips them.
func TestLappedObserverSkipsToTheWritePosition(t *testing.T) {
	w := newRing(t, V4, 8192)
	c, o := open(t, w.Path(), Consume), open(t, w.Path(), Observe)
	push(t, w, 0, 8191)
	seen := 0
	_, err := o.Read(0, func(b Batch) {
		seen += b.Len()
		if got := len(read(t, c)); seen == b.Len() && got != 8191 {
			t.Errorf("the consumer got %d events", got)
		}
		commit(t, c)
		push(t, w, 0, 6000)
		equal(t, "the observer's first events", b.Event(b.Len()-1), sample(V4, seen-1))
	})
	if !errors.Is(err, ErrLapped) || seen >= 8191 {
		t.Errorf("%d events, error %v; want %v", seen, err, ErrLapped)
	}
	if o.Position() != headerOf(w).WritePos {
		t.Errorf("the observer continues at %d, the agent is at %d", o.Position(), headerOf(w).WritePos)
	}
	push(t, w, 9000, 9010)
	equal(t, "events after that", read(t, o), samples(V4, 9000, 9010))
}

// The agent restarts with another layout while an observer processes its copy.
func TestObserverDetectsARestartBetweenBatches(t *testing.T) {
	w := newRing(t, V4, 8192)
	o := open(t, w.Path(), Observe)
	push(t, w, 0, 8191)
	batches := 0
	_, err := o.Read(0, func(Batch) {
		batches++
		push(t, create(t, w.Path(), V3, 8192), 0, 8191)
	})
	if !errors.Is(err, ErrRestarted) || batches != 1 {
		t.Errorf("%d batches, error %v", batches, err)
	}
}

// A consumer may pass the write position that an observer has loaded. An almost empty
// ring must not look full then.
func TestObserverSeesNoFullRingBesideAConsumer(t *testing.T) {
	w := newRing(t, V4, 4096)
	o := open(t, w.Path(), Observe)
	var stop atomic.Bool
	var both sync.WaitGroup
	both.Go(func() { // agent and consumer, faster than real ones
		for at := uint64(1); !stop.Load(); at++ {
			atomic.StoreUint64(w.write, at&w.mask)
			atomic.StoreUint64(w.read, at&w.mask)
		}
	})
	// Count only looks between which the two have moved. On a single core, most
	// looks are not.
	const want = 50_000
	full, moved, last := 0, 0, uint64(0)
	for looks := 0; moved < want && looks < 500*want; looks++ {
		s, err := o.look()
		if err != nil {
			t.Error(err)
			break
		}
		if s.read != last {
			moved, last = moved+1, s.read
		}
		if s.fill > 2048 {
			full++
		}
	}
	stop.Store(true)
	both.Wait()
	// A look can be wrong if it is interrupted for half a lap.
	if full > want/1000 {
		t.Errorf("%d of %d looks saw a full ring, but it never held more than one event", full, moved)
	}
}

// The consumer has moved its position since the observer loaded it.
func TestObserverLoadsBothPositionsAgain(t *testing.T) {
	p, w := plainRing(t, V4, 16)
	advance(t, w, p.reader(t, Consume), 9)
	if s := p.reader(t, Observe).loadBoth(1); s != (state{write: 9, read: 9}) {
		t.Errorf("loaded %+v, want 9 and 9", s)
	}
}
