// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// An agent's ring is drained: what is pending is added up in place, and the
// agent gets the room back.
func Example() {
	path, done := agentRing()
	defer done()

	r, err := ringbuf.OpenReader(path, ringbuf.Consume)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()

	totals := map[string]uint64{}
	fill, err := r.Read(0, func(b ringbuf.Batch) {
		for i := range b.Len() {
			e := b.Event(i)
			totals[e.EventName()] += e.Value
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	// Whoever stores totals stores them here: a crash before the commit gives
	// the same events to the next reader.
	if err := r.Commit(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(fill, "events in a ring of layout", r.Layout())
	fmt.Println(totals["agent_tx_bytes"], "bytes written in", totals["agent_tx_requests_num"], "transfers")
	// Output:
	// 8 events in a ring of layout v4
	// 12288 bytes written in 2 transfers
}

// An observer works beside a consumer, and needs permission to read only.
func ExampleOpenReader_observe() {
	path, done := agentRing()
	defer done()

	r, err := ringbuf.OpenReader(path, ringbuf.Observe)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()

	events := make([]ringbuf.Event, 3)
	n, err := r.ReadInto(events)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range events[:n] {
		fmt.Println(e.Category, e.EventName(), e.Value)
	}
	// Output:
	// PERFORMANCE agent_xfer_post_time 12
	// PERFORMANCE agent_xfer_time 340
	// TRANSFER agent_tx_bytes 4096
}

// A Go program that wants to be read like an agent pushes its own events.
func ExampleCreate() {
	dir, err := os.MkdirTemp("", "nixl")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	w, err := ringbuf.Create(filepath.Join(dir, "my-agent"), ringbuf.V4, 2)
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()

	fmt.Println(w.Push(ringbuf.NewEvent(ringbuf.TypeRxBytes, 65536)))
	// Nobody has taken the first one, and one is all that two slots hold.
	err = w.Push(ringbuf.NewEvent(ringbuf.TypeRxRequests, 1))
	fmt.Println(errors.Is(err, ringbuf.ErrFull), err)
	// Output:
	// <nil>
	// true ring is full
}

// What can't be read says why, and what to do.
func ExampleUnknownVersionError() {
	err := error(&ringbuf.UnknownVersionError{Version: 6})
	fmt.Println(err)
	// Output:
	// unknown ring version 6 (known are 1 to 5): this agent needs a newer reader; the ring is left as it is
}

// agentRing stands for an agent: its ring with two transfers of one group of
// events each.
func agentRing() (path string, done func()) {
	dir, err := os.MkdirTemp("", "nixl")
	if err != nil {
		log.Fatal(err)
	}
	w, err := ringbuf.Create(filepath.Join(dir, "agent"), ringbuf.V4, 64)
	if err != nil {
		log.Fatal(err)
	}
	for _, bytes := range []uint64{4096, 8192} {
		_, err := w.PushBatch([]ringbuf.Event{
			ringbuf.NewEvent(ringbuf.TypeXferPostTime, 12),
			ringbuf.NewEvent(ringbuf.TypeXferTime, 340),
			ringbuf.NewEvent(ringbuf.TypeTxBytes, bytes),
			ringbuf.NewEvent(ringbuf.TypeTxRequests, 1),
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	return w.Path(), func() {
		if err := errors.Join(w.Close(), os.RemoveAll(dir)); err != nil {
			log.Fatal(err)
		}
	}
}
