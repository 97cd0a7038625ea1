// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// storedState returns the state of an agent with a ring, for which two streams have ended.
func storedState(tb testing.TB, shape *Shape) *State {
	tb.Helper()
	busy := busyAgent(tb, shape)
	return &State{
		Agent: busy, Name: "agent",
		Attributes: attribute.NewSet(attribute.String("service.name", "ü"), attribute.Int("process.pid", -1)),
		Ended: []Stream{
			{
				Agent: busy, Name: "before", Layout: ringbuf.V3, Attributes: attribute.NewSet(attribute.Int64("process.pid", 1<<40)),
				Start: time.Unix(0, 3<<50), End: time.Unix(0, 4<<50),
			},
			{Agent: NewAgent(shape), Start: time.Unix(0, 1), End: time.Unix(0, 2)},
		},
	}
}

func TestStateIsRestored(t *testing.T) {
	shape := shapes(t)["default"]
	want := storedState(t, shape)
	got, err := shape.RestoreState(want.Append(nil))
	must.OK(t, err)
	if got.Name != want.Name || !got.Attributes.Equals(&want.Attributes) || len(got.Ended) != 2 {
		t.Fatalf("restored %+v, want %+v", got, want)
	}
	first, second := &got.Ended[0], &got.Ended[1]
	if first.Name != "before" || first.Layout != ringbuf.V3 || !first.Attributes.Equals(&want.Ended[0].Attributes) ||
		first.Start.UnixNano() != 3<<50 || first.End.UnixNano() != 4<<50 || second.End.UnixNano() != 2 {
		t.Errorf("restored streams %+v, want %+v", got.Ended, want.Ended)
	}
	if !bytes.Equal(got.Append(nil), want.Append(nil)) {
		t.Error("the totals have changed")
	}
}

// FuzzState restores arbitrary bytes. If they are accepted, the totals are usable, and storing
// them again is possible.
func FuzzState(f *testing.F) {
	list := shapes(f)
	for _, shape := range list {
		f.Add(storedState(f, shape).Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, shape := range list {
			s, err := shape.RestoreState(b)
			if err != nil {
				if !errors.Is(err, ErrCheckpoint) && !errors.Is(err, ErrShape) {
					t.Errorf("error is %v", err)
				}
				continue
			}
			_, err = shape.RestoreState(s.Append(nil))
			must.OK(t, err)
			if usage, known := s.Agent.MemoryUsage(); usage < 0 || !known && usage != 0 {
				t.Errorf("memory usage is %d (known: %v)", usage, known)
			}
			s.Agent.Restarted()
			if sum := s.Agent.Snapshot(nil).Duration().Sum(); math.IsNaN(sum) || sum < 0 {
				t.Errorf("sum is %v", sum)
			}
		}
	})
}
