// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQuadsAreViewsOfTheEvents(t *testing.T) {
	for n := range 13 {
		events := make([]TypedEvent, n)
		for i := range events {
			events[i] = TypedEvent{Type: Type(i), Value: uint64(i)}
		}
		quads := Quads(events)
		if len(quads) != n/4 {
			t.Fatalf("%d groups of %d events", len(quads), n)
		}
		for i := range quads {
			if d := cmp.Diff(events[4*i:4*i+4], quads[i][:], cmp.AllowUnexported(TypedEvent{})); d != "" {
				t.Errorf("group %d of %d events (-want +got)\n%s", i, n, d)
			}
			quads[i][3].Value = 99
			if events[4*i+3].Value != 99 {
				t.Errorf("group %d of %d events is a copy", i, n)
			}
		}
	}
	if len(Quads(nil)) != 0 {
		t.Error("Quads(nil) returned groups")
	}
}

func TestMadeBatchHasTheEventsOfARing(t *testing.T) {
	eachLayout(t, func(t *testing.T, l Layout) {
		events := samples(l, 0, 5)
		b, err := MakeBatch(l, events)
		if err != nil || b.Len() != len(events) || b.Layout() != l {
			t.Fatalf("%d events, %v", b.Len(), err)
		}
		for i := range events {
			if got := b.Event(i); got != events[i] {
				t.Errorf("event %d: %+v, want %+v", i, got, events[i])
			}
		}
	})
	if _, err := MakeBatch(V4, []Event{NewNamedEvent(CategoryCustom, "x", 1)}); !errors.Is(err, ErrNoType) {
		t.Errorf("an event without a type: %v", err)
	}
}
