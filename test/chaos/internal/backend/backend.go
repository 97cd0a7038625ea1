// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package backend is an OTLP backend that can be in a bad mood: it refuses,
// stalls, and asks to come again later. What it takes it holds against what it
// took before.
package backend

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/test/chaos/internal/ledger"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// Mood is what a backend does with a request.
type Mood int

// The moods.
const (
	Takes     Mood = iota // it takes the request
	Stalls                // it says nothing for as long as it is in this mood
	Throttles             // 429 with a time after which to come again, or RESOURCE_EXHAUSTED
	Fails                 // 503 or UNAVAILABLE
	Hangs                 // it breaks the connection off in the middle
	moods
)

// String is the mood in a word.
func (m Mood) String() string {
	return [moods]string{"takes", "stalls", "throttles", "fails", "hangs up"}[m]
}

// again is when a backend that throttles wants to be asked again.
const again = time.Second

// Backend is a backend on a port of the loopback interface.
type Backend struct {
	address string
	open    func(net.Listener) (closeServer func())

	mu      sync.Mutex
	history history
	took    int           // requests
	turned  int           // requests that were turned down
	more    chan struct{} // closed, and made anew, when one is taken
	mood    Mood
	other   chan struct{} // closed, and made anew, when the mood changes
	close   func()        // nil while nobody listens
}

func newBackend(tb testing.TB, open func(*Backend) func(net.Listener) func()) *Backend {
	tb.Helper()
	b := &Backend{history: newHistory(), more: make(chan struct{}), other: make(chan struct{})}
	b.open = open(b)
	for b.close == nil {
		b.address = fmt.Sprintf("127.0.0.1:%d", proc.FreePort(tb))
		if err := b.listen(tb.Context()); err != nil {
			tb.Log(err) // another program was faster
		}
	}
	tb.Cleanup(b.Refuse)
	return b
}

// URL is what an exporter is to be told.
func (b *Backend) URL() string { return "http://" + b.address }

// Listen opens the port again.
func (b *Backend) Listen(tb testing.TB) {
	tb.Helper()
	if err := b.listen(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

func (b *Backend) listen(ctx context.Context) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", b.address)
	if err != nil {
		return err
	}
	closeServer := b.open(l)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.close = closeServer
	return nil
}

// Refuse closes the port: connections are refused from now on, and those that
// there are break off.
func (b *Backend) Refuse() {
	b.mu.Lock()
	closeServer := b.close
	b.close = nil
	b.mu.Unlock()
	if closeServer != nil {
		closeServer()
	}
}

// Be changes the mood.
func (b *Backend) Be(m Mood) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mood = m
	close(b.other)
	b.other = make(chan struct{})
}

// admit says what to do with a request. It waits while the backend stalls,
// unless the caller goes away.
func (b *Backend) admit(ctx context.Context) Mood {
	for {
		b.mu.Lock()
		mood, other := b.mood, b.other
		if mood != Takes {
			b.turned++
		}
		b.mu.Unlock()
		if mood != Stalls {
			return mood
		}
		select {
		case <-ctx.Done():
			return Fails
		case <-other:
		}
	}
}

func (b *Backend) take(m pmetric.Metrics) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.history.add(m)
	b.took++
	close(b.more)
	b.more = make(chan struct{})
}

// Totals are the newest values of what only ever grows, by the agents' paths.
func (b *Backend) Totals() map[string]ledger.Series {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.history.totals()
}

// Contradictions are points that can't both be true: of a counter that went
// back, or began anew.
func (b *Backend) Contradictions() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.history.wrong
}

// Requests are how many requests were taken, and turned down.
func (b *Backend) Requests() (taken, turned int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.took, b.turned
}

// AwaitMore waits for two more requests to be taken.
func (b *Backend) AwaitMore(tb testing.TB) {
	tb.Helper()
	taken, _ := b.Requests()
	b.Await(tb, func(map[string]ledger.Series) string {
		if now, _ := b.Requests(); now < taken+2 {
			return "no more requests"
		}
		return ""
	})
}

// Await waits until a check of the totals, which is made anew with each
// request that is taken, has nothing to say.
func (b *Backend) Await(tb testing.TB, check func(map[string]ledger.Series) string) {
	tb.Helper()
	timer := time.NewTimer(proc.Patience)
	defer timer.Stop()
	for {
		b.mu.Lock()
		more := b.more
		b.mu.Unlock()
		missing := check(b.Totals())
		if missing == "" {
			return
		}
		select {
		case <-more:
		case <-timer.C:
			tb.Fatalf("after %v still: %s", proc.Patience, missing)
		}
	}
}
