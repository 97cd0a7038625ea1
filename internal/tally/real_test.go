// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally_test

import (
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestTotalsOfRealRingsMatchTheirJSON(t *testing.T) {
	for _, c := range ringtest.Cases(t) {
		if !c.Readable() {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			file, err := os.ReadFile(c.File)
			if err != nil {
				t.Fatal(err)
			}
			mem := memory(len(file))
			copy(mem, file)
			r := openRing(t, mem)
			agent := tally.NewAgent(shape(t, tally.Config{}))
			if _, err := r.Read(0, agent.Add); err != nil {
				t.Fatal(err)
			}
			want := newModel()
			for i := range c.Pending {
				want.add(r.Layout(), eventOf(&c.Pending[i]))
			}
			compare(t, want, agent)
			if c.Agent() && agent.TornGroups() != 0 {
				t.Errorf("%d torn groups in a ring that was never full", agent.TornGroups())
			}
		})
	}
}

// eventOf converts an event from JSON.
func eventOf(e *ringtest.Event) ringbuf.Event {
	event := ringbuf.Event{Category: -1, Value: e.Value}
	if e.Category != nil {
		event.Category = ringbuf.Category(*e.Category)
	}
	if e.Type != nil {
		event.Type = ringbuf.Type(*e.Type)
		return event
	}
	event.Named, event.Name = true, ringbuf.MakeName(e.Name)
	return event
}

func compare(t *testing.T, want *model, got *tally.Agent) {
	t.Helper()
	w, g := want.report(), reportOf(&got.Totals)
	if reflect.DeepEqual(w, g) { // a fraction of the time of Diff, which matters when fuzzing
		return
	}
	if d := cmp.Diff(w, g, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("totals (-want +got)\n%s", d)
	}
}
