// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
)

// A process that takes no lock moves readPos. The reader detects it, continues from
// the new position and reads no event twice.
func TestForeignReaderIsDetected(t *testing.T) {
	for _, c := range []struct {
		name              string
		uncommitted       int // read before
		taken             int // by the other, from where this reader has committed
		from, to          int // what is read after that
		committedPosition uint64
	}{
		{"takes unread events", 0, 4, 4, 9, 9 + 5},
		{"takes some of what was read", 6, 4, 6, 9, 9 + 5},
		{"takes all of what was read", 6, 6, 6, 9, 9 + 5},
		{"takes more than was read", 6, 8, 8, 9, 9 + 5},
		{"takes everything", 0, 9, 9, 9, 9 + 5},
	} {
		for _, inCommit := range []bool{false, true} {
			if inCommit && c.uncommitted == 0 {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				w := newRing(t, V4, 16)
				r := open(t, w.Path(), Consume)
				advance(t, w, r, 5)
				push(t, w, 0, c.uncommitted)
				read(t, r)
				push(t, w, c.uncommitted, 9)
				ringtest.Edit(t, w.Path(), func(h *ringtest.Header) { h.ReadPos = uint64(5 + c.taken) })

				var err error
				if inCommit {
					err = r.Commit()
				} else {
					var got []Event
					got, err = tryRead(r, 0)
					equal(t, "events of the read that notices", got, []Event(nil))
				}
				if !errors.Is(err, ErrForeignRead) {
					t.Fatalf("error %v, want one from 5 to %d", err, 5+c.taken)
				}
				says(t, err, w.Path(), "another process", fmt.Sprintf("from 5 to %d", 5+c.taken))
				equal(t, "events after that", read(t, r), want(samples(V4, c.from, c.to)))
				commit(t, r)
				if h := headerOf(w); h.ReadPos != c.committedPosition {
					t.Errorf("read position %d, want %d", h.ReadPos, c.committedPosition)
				}
			})
		}
	}
}

// If a foreign reader stops at position 0, the ring looks as if the agent had
// restarted. The caller opens the ring again and loses only the foreign reader's
// events.
func TestForeignReaderAtZero(t *testing.T) {
	w := newRing(t, V4, 16)
	r := open(t, w.Path(), Consume)
	advance(t, w, r, 10)
	push(t, w, 0, 9)
	ringtest.Edit(t, w.Path(), func(h *ringtest.Header) { h.ReadPos = 0 })
	if got, err := tryRead(r, 0); !errors.Is(err, ErrRestarted) || len(got) != 0 {
		t.Errorf("%d events, error %v", len(got), err)
	}
	must.OK(t, r.Close())
	equal(t, "events", read(t, open(t, w.Path(), Consume)), samples(V4, 6, 9))
}
