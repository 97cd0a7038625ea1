// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// ring creates the ring of an agent, and its directory if the name has a slash.
func ring(tb testing.TB, dir, name string, layout ringbuf.Layout, capacity int) *ringbuf.Writer {
	tb.Helper()
	path := filepath.Join(dir, name)
	must.OK(tb, os.MkdirAll(filepath.Dir(path), 0o700))
	w, err := ringbuf.Create(path, layout, capacity)
	must.OK(tb, err)
	tb.Cleanup(func() { _ = w.Close() })
	return w
}

// push writes events, which must fit.
func push(tb testing.TB, w *ringbuf.Writer, events ...ringbuf.Event) {
	tb.Helper()
	n, err := w.PushBatch(events)
	must.OK(tb, err)
	if n != len(events) {
		tb.Fatalf("only %d of %d events fit into the ring", n, len(events))
	}
}

// write returns the four events of a transfer.
func write(bytes, xfer, post uint64) []ringbuf.Event {
	return []ringbuf.Event{
		ringbuf.NewEvent(ringbuf.TypeXferPostTime, post), ringbuf.NewEvent(ringbuf.TypeXferTime, xfer),
		ringbuf.NewEvent(ringbuf.TypeTxBytes, bytes), ringbuf.NewEvent(ringbuf.TypeTxRequests, 1),
	}
}

const (
	transmitted = "nixl.transfer.io{nixl.transfer.direction=transmit}"
	requests    = "nixl.transfer.requests{nixl.transfer.direction=transmit}"
)

// slow is a transfer that takes longer than the default of slow_transfer.
var slow = write(1, 2_000_000, 1)
