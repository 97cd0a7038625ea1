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

// Drain an agent's ring: add up the pending events in place, then commit, so the
// agent can reuse the slots.
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
	// A program that saves its totals saves them here. If it crashes before the
	// commit, the next reader reads the same events again.
	if err := r.Commit(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(fill, "events in a ring of layout", r.Layout())
	fmt.Println(totals["agent_tx_bytes"], "bytes written in", totals["agent_tx_requests_num"], "transfers")
	// Output:
	// 8 events in a ring of layout v4
	// 12288 bytes written in 2 transfers
}

// An observer can run next to a consumer, and needs only read permission.
func ExampleOpenReader_observe() {
	path, done := agentRing()
	defer done()

	r, err := ringbuf.OpenReader(path, ringbuf.Observe)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()

	_, err = r.Read(3, func(b ringbuf.Batch) {
		for i := range b.Len() {
			e := b.Event(i)
			fmt.Println(e.Category, e.EventName(), e.Value)
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// PERFORMANCE agent_xfer_post_time 12
	// PERFORMANCE agent_xfer_time 340
	// TRANSFER agent_tx_bytes 4096
}

// A Go program can publish events like an agent.
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
	// The ring is full: with two slots, it holds one event.
	err = w.Push(ringbuf.NewEvent(ringbuf.TypeRxRequests, 1))
	fmt.Println(errors.Is(err, ringbuf.ErrFull), err)
	// Output:
	// <nil>
	// true ring is full
}

// agentRing simulates an agent: it creates a ring with the events of two transfers.
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
