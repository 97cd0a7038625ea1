// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"fmt"
	"testing"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// A container is limited in the work that its events cause, so the most expensive ones must count as more.
func TestExpensiveEventsAreMoreWork(t *testing.T) {
	transfer := []ringbuf.Event{
		ringbuf.NewEvent(ringbuf.TypeXferPostTime, 1), ringbuf.NewEvent(ringbuf.TypeXferTime, 1),
		ringbuf.NewEvent(ringbuf.TypeTxBytes, 1), ringbuf.NewEvent(ringbuf.TypeTxRequests, 1),
	}
	torn := append(transfer[:2:2], transfer...)
	failure := []ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeErrBackend, 1)}
	unknown := []ringbuf.Event{{Type: 1000}}
	name := func(i int) ringbuf.Event {
		return ringbuf.Event{Category: ringbuf.CategoryBackend, Named: true, Name: ringbuf.MakeName(fmt.Sprint("name-", i))}
	}
	watch := Watch{Transfer: func(*Transfer) {}, Error: func(Error) {}}
	for _, tt := range []struct {
		what   string
		layout ringbuf.Layout
		watch  Watch
		events []ringbuf.Event
		want   int
	}{
		{"transfer", ringbuf.V4, Watch{}, transfer, 4},
		{"transfer of an old agent", ringbuf.V2, Watch{}, transfer, 4},
		{"transfer that is passed on", ringbuf.V4, watch, transfer, 4 + watchedWork},
		{"torn transfer, and one that is passed on", ringbuf.V4, watch, torn, 6*singleWork + watchedWork},
		{"error", ringbuf.V4, Watch{Transfer: watch.Transfer}, failure, singleWork},
		{"error that is passed on", ringbuf.V4, watch, failure, singleWork + errorWork},
		{"unknown type", ringbuf.V4, Watch{}, unknown, singleWork + lookupWork},
		{"names", ringbuf.V1, Watch{}, []ringbuf.Event{name(1), name(2)}, 2 * (singleWork + lookupWork)},
		{"repeated name", ringbuf.V1, Watch{}, []ringbuf.Event{name(1), name(1)}, 2*singleWork + lookupWork},
	} {
		a := NewAgent(shapeOf(t, Config{}))
		a.Watch(tt.watch)
		if got := a.Add(batchOf(t, tt.layout, tt.events...)); got != tt.want {
			t.Errorf("%s: work %d, want %d", tt.what, got, tt.want)
		}
	}
}
