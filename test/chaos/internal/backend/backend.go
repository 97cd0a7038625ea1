// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package backend is an OTLP backend that can simulate faults. It checks that the points that it
// accepts are consistent with earlier points.
package backend

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/test/chaos/internal/ledger"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// Mode is how a backend answers requests.
type Mode int

// The modes.
const (
	Accepts   Mode = iota // accepts requests
	Stalls                // doesn't answer while it is in this mode
	Throttles             // 429 with Retry-After, or RESOURCE_EXHAUSTED
	Fails                 // 503 or UNAVAILABLE
	HangsUp               // closes the connection during the response
	modes
)

// String returns the name of the mode.
func (m Mode) String() string {
	return [modes]string{"accepts", "stalls", "throttles", "fails", "hangs up"}[m]
}

// retryAfter is the Retry-After of a backend that throttles.
const retryAfter = time.Second

// Backend is a backend on a port of the loopback interface.
type Backend struct {
	address string
	open    func(net.Listener) (closeServer func())

	mu       sync.Mutex
	sums     *otlpfile.Sums // in any order, because a queue may deliver points late or twice
	accepted int            // number of requests
	rejected int            // number of requests
	more     chan struct{}  // closed and replaced when a request is accepted
	mode     Mode
	changed  chan struct{} // closed and replaced when the mode changes
	close    func()        // nil while the port is closed
}

func newBackend(tb testing.TB, open func(*Backend) func(net.Listener) func()) *Backend {
	tb.Helper()
	b := &Backend{sums: otlpfile.NewSumsAnyOrder(), more: make(chan struct{}), changed: make(chan struct{})}
	b.open = open(b)
	for b.close == nil {
		b.address = fmt.Sprintf("127.0.0.1:%d", proc.FreePort(tb))
		if err := b.listen(tb.Context()); err != nil {
			tb.Log(err) // another program has taken the port
		}
	}
	tb.Cleanup(b.Refuse)
	return b
}

// URL returns the endpoint for exporters.
func (b *Backend) URL() string { return "http://" + b.address }

// Listen opens the port again.
func (b *Backend) Listen(tb testing.TB) {
	tb.Helper()
	must.OK(tb, b.listen(tb.Context()))
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

// Refuse closes the port and all connections. New connections are refused.
func (b *Backend) Refuse() {
	b.mu.Lock()
	closeServer := b.close
	b.close = nil
	b.mu.Unlock()
	if closeServer != nil {
		closeServer()
	}
}

// SetMode changes the mode.
func (b *Backend) SetMode(m Mode) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mode = m
	close(b.changed)
	b.changed = make(chan struct{})
}

// admit returns the mode for a request. It waits while the backend stalls, unless ctx ends.
func (b *Backend) admit(ctx context.Context) Mode {
	for {
		b.mu.Lock()
		mode, changed := b.mode, b.changed
		if mode != Accepts {
			b.rejected++
		}
		b.mu.Unlock()
		if mode != Stalls {
			return mode
		}
		select {
		case <-ctx.Done():
			return Fails
		case <-changed:
		}
	}
}

func (b *Backend) accept(m pmetric.Metrics) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sums.Add(m)
	b.accepted++
	close(b.more)
	b.more = make(chan struct{})
}

// Totals returns the totals of all agents, by their paths.
func (b *Backend) Totals() map[string]ledger.Series {
	b.mu.Lock()
	defer b.mu.Unlock()
	return totals(b.sums)
}

// Contradictions returns descriptions of inconsistent points: counters that decreased or have a new
// start time.
func (b *Backend) Contradictions() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return contradictions(b.sums)
}

// Requests returns the numbers of accepted and rejected requests.
func (b *Backend) Requests() (accepted, rejected int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.accepted, b.rejected
}

// AwaitMore waits until two more requests are accepted.
func (b *Backend) AwaitMore(tb testing.TB) {
	tb.Helper()
	accepted, _ := b.Requests()
	b.Await(tb, func(map[string]ledger.Series) string {
		if now, _ := b.Requests(); now < accepted+2 {
			return "no more requests"
		}
		return ""
	})
}

// Await calls check with the totals after each accepted request, until it returns "".
func (b *Backend) Await(tb testing.TB, check func(map[string]ledger.Series) string) {
	tb.Helper()
	timer := time.NewTimer(must.Patience)
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
			tb.Fatalf("after %v still: %s", must.Patience, missing)
		}
	}
}
