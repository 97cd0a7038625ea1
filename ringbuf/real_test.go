// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
)

// wantEvents converts a real ring's JSON to the events that this package should read.
func wantEvents(c ringtest.Case) []Event {
	var events []Event
	for _, e := range c.Pending {
		want := Event{TimestampMicros: e.TimestampMicros, Category: -1, Value: e.Value}
		if e.Type != nil {
			want.Type = Type(*e.Type)
			want.Category = want.Type.Category()
		} else {
			want.Named = true
			want.Name = MakeName(e.Name)
		}
		if e.Category != nil {
			want.Category = Category(*e.Category)
		}
		events = append(events, want)
	}
	return events
}

var layoutOfVersion = map[int32]Layout{1: V1, 2: V2, 4: V4}

func TestRealRingsAreReadAndCommitted(t *testing.T) {
	for _, c := range ringtest.Cases(t) {
		if !c.Readable() {
			continue
		}
		for _, mode := range modes() {
			t.Run(c.Name+"/"+mode.String(), func(t *testing.T) {
				path := ringtest.Copy(t, c)
				r := open(t, path, mode)
				if r.Layout() != layoutOfVersion[c.Version] || r.Capacity() != int(c.Capacity) || r.Position() != c.ReadPos {
					t.Errorf("layout %v, capacity %d, position %d; the JSON says version %d, %d and %d",
						r.Layout(), r.Capacity(), r.Position(), c.Version, c.Capacity, c.ReadPos)
				}
				got := read(t, r)
				equal(t, "events", got, wantEvents(c))
				for i, e := range c.Pending {
					if name := got[i].EventName(); name != e.Name && e.Name != "unknown_event" {
						t.Errorf("event %d is named %q, want %q", i, name, e.Name)
					}
				}

				commit(t, r)
				want := ringtest.ReadHeader(t, c.File)
				if mode == Consume {
					want.ReadPos = afterCommit(Header(want))
				}
				equal(t, "header after the commit", ringtest.ReadHeader(t, path), want)
				equal(t, "slots after the commit", fileBytes(t, path)[HeaderSize:], fileBytes(t, c.File)[HeaderSize:])
				if again := read(t, r); len(again) != 0 {
					t.Errorf("a second read gives %d events", len(again))
				}
			})
		}
	}
}

// Given the same events as a NIXL ring, a Writer must produce the same file, except
// for the padding, which NIXL doesn't initialize. This test uses rings that were
// filled from the start and never read, because only there the JSON has all events.
func TestWriterWritesWhatNIXLWrites(t *testing.T) {
	tried := 0
	for _, c := range ringtest.Cases(t) {
		if !c.Readable() || c.ReadPos != 0 {
			continue
		}
		tried++
		t.Run(c.Name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "agent")
			w := create(t, path, layoutOfVersion[c.Version], int(c.Capacity))
			events := wantEvents(c)
			if n, err := w.PushBatch(events); err != nil || n != len(events) {
				t.Fatalf("pushed %d of %d: %v", n, len(events), err)
			}
			got, want := fileBytes(t, path), fileBytes(t, c.File)
			if len(got) != len(want) {
				t.Fatalf("%d bytes, want %d", len(got), len(want))
			}
			equal(t, "header", got[:HeaderSize], want[:HeaderSize])
			got, want = withoutPadding(w.Layout(), got), withoutPadding(w.Layout(), want)
			size := w.Layout().EventSize()
			for i := range c.Capacity {
				at := HeaderSize + int(i)*size
				if g, w := got[at:at+size], want[at:at+size]; string(g) != string(w) {
					t.Errorf("slot %d is % x, want % x", i, g, w)
				}
			}
		})
	}
	if tried < 20 {
		t.Errorf("only %d rings could be tried", tried)
	}
}

// withoutPadding returns a ring with the padding of every slot cleared.
func withoutPadding(l Layout, ring []byte) []byte {
	padding := map[Layout]int{V1: 44, V3: 4, V4: 4}
	at, ok := padding[l]
	if !ok {
		return ring
	}
	ring = slices.Clone(ring)
	for slot := HeaderSize; slot < len(ring); slot += l.EventSize() {
		clear(ring[slot+at : slot+at+4])
	}
	return ring
}
