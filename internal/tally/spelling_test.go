// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"testing"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Two names in one cache entry would evict each other at every event.
func TestNIXLNamesHaveDifferentCacheEntries(t *testing.T) {
	places := map[uint64]seriesKey{}
	spellings := []seriesKey{{ringbuf.CategoryError, "BAD_STATUS"}}
	for key := range spelledTypes {
		spellings = append(spellings, key)
	}
	if len(spellings) != 33 {
		t.Errorf("%d names, want 33: 20, 12 legacy names of errors, and BAD_STATUS", len(spellings))
	}
	for _, key := range spellings {
		name := ringbuf.MakeName(key.name)
		place := wordsOf(&name).hash(mark(key.category))
		if other, taken := places[place]; taken {
			t.Errorf("%v and %v share entry %d", key, other, place)
		}
		places[place] = key
	}
}

func TestCategoriesWithTheSameCacheEntryAreDistinguished(t *testing.T) {
	name := ringbuf.MakeName("agent_tx_bytes")
	words := wordsOf(&name)
	for c := ringbuf.Category(100); ; c++ {
		if words.hash(mark(c)) != words.hash(mark(ringbuf.CategoryTransfer)) {
			continue
		}
		a := NewAgent(shapeOf(t, Config{}))
		a.Add(batchOf(t, ringbuf.V1,
			ringbuf.NewNamedEvent(ringbuf.CategoryTransfer, "agent_tx_bytes", 1), ringbuf.NewNamedEvent(c, "agent_tx_bytes", 1),
			ringbuf.NewNamedEvent(ringbuf.CategoryTransfer, "agent_tx_bytes", 1), ringbuf.NewNamedEvent(c, "agent_tx_bytes", 1)))
		if got := a.Size(Transmit).Count(); got != 2 || len(a.Series()) != 1 || a.Series()[0].Events != 2 {
			t.Errorf("%d sizes and %d series, want 2 and 1", got, len(a.Series()))
		}
		return
	}
}

// An unused cache entry has an empty name, too.
func TestEmptyNameDoesNotMatchAnUnusedCacheEntry(t *testing.T) {
	a := NewAgent(shapeOf(t, Config{}))
	var events []ringbuf.Event
	for c := ringbuf.Category(-1); c < ringbuf.Categories; c++ {
		events = append(events, ringbuf.NewNamedEvent(c, "", 1))
	}
	a.Add(batchOf(t, ringbuf.V1, events...))
	if got := a.sizes[0].Count(); got != 0 || len(a.Series()) != len(events) {
		t.Errorf("%d sizes and %d series, want none and %d", got, len(a.Series()), len(events))
	}
}

func TestParseTypeNameReversesTypeName(t *testing.T) {
	for _, l := range ringbuf.Layouts() {
		for _, kind := range []ringbuf.Type{0, ringbuf.TypeErrNoTelemetry, ringbuf.TypeEventsDropped, ringbuf.Type(ringbuf.Types), 1000, 1<<32 - 1} {
			if got, known := parseTypeName(l.TypeName(kind)); got != kind || !known {
				t.Errorf("%s of layout %v is %d, %v", l.TypeName(kind), l, got, known)
			}
		}
	}
	for _, name := range []string{"", "mine", "unknown_event_", "unknown_event_x", "unknown_event_01", "unknown_event_4294967296"} {
		if got, known := parseTypeName(name); known {
			t.Errorf("%q is type %d", name, got)
		}
	}
}
