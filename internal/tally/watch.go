// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"math"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Watch receives transfers and errors while they are counted. Its functions may be nil, and
// must not use the agent.
type Watch struct {
	Transfer func(*Transfer) // called for each transfer whose events were all read; valid until it returns
	Error    func(Error)     // called for each error event
}

// Transfer is a transfer whose events were all read.
type Transfer struct {
	Layout         ringbuf.Layout
	Micros         uint64 // time of recording, since the epoch; 0 if the layout has no times
	Direction      Direction
	Bytes          uint64
	Duration, Post uint64 // µs
}

// Throughput returns the transfer's bytes per second.
func (t *Transfer) Throughput() uint64 { return semconv.Throughput(t.Bytes, t.Duration) }

// Error is an operation that ended in an error.
type Error struct {
	Layout ringbuf.Layout
	Micros uint64       // as in [Transfer]
	Type   ringbuf.Type // type of the status; not an error type if the status isn't in the catalog
}

// otherError is the type of errors that aren't in the catalog.
const otherError ringbuf.Type = math.MaxUint32

// watch applies a [Watch] to the events that are being counted.
type watch struct {
	Watch

	transfer Transfer // the one that is being passed, so that none is allocated

	layout ringbuf.Layout
	timed  []ringbuf.TimedEvent // the events that are being counted, if they have times
	at     int                  // index of the event that is being counted
}

// Watch passes transfers and errors to w from now on, and no longer to that of an earlier call.
func (a *Agent) Watch(w Watch) {
	a.watch = nil
	if w.Transfer != nil || w.Error != nil {
		a.watch = &watch{Watch: w}
	}
}

// begin prepares for a batch.
func (w *watch) begin(l ringbuf.Layout) {
	w.layout, w.timed, w.at = l, nil, 0
}

// times sets the events with times that are counted next.
func (w *watch) times(events []ringbuf.TimedEvent) {
	if w != nil {
		w.timed, w.at = events, 0
	}
}

// micros returns the time of the event at an index, or 0.
func (w *watch) micros(at int) uint64 {
	if at >= len(w.timed) {
		return 0
	}
	return w.timed[at].TimestampMicros
}

// transfers passes the transfers of a run. at is the index of its first event.
func (w *watch) transfers(groups []group, at int) {
	t := &w.transfer
	t.Layout = w.layout
	for i := range groups {
		g := &groups[i]
		t.Direction = Direction((g[2].Type - ringbuf.TypeTxBytes) & 1)
		t.Bytes, t.Duration, t.Post = g[2].Value, g[1].Value, g[0].Value
		t.Micros = w.micros(at + groupSize*i + groupSize - 1)
		w.Transfer(t)
	}
}

// transferred passes a transfer. at is the index of its last event.
func (w *watch) transferred(at int, d Direction, bytes, took, post uint64) {
	w.transfer = Transfer{Layout: w.layout, Micros: w.micros(at), Direction: d, Bytes: bytes, Duration: took, Post: post}
	w.Transfer(&w.transfer)
}

func (w *watch) failed(t ringbuf.Type) {
	w.Error(Error{Layout: w.layout, Micros: w.micros(w.at), Type: t})
}
