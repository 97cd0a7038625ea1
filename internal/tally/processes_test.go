// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// storedProcesses returns the totals of an agent with two processes that haven't exited.
func storedProcesses(r *rand.Rand) *tally.Processes {
	p := &tally.Processes{
		Bounds: []float64{10, 100, 1000}, Base: randomValues(r, 4), Exited: true, Counted: []string{"nixl.1.1.0.mmap", "nixl.2.2.0.mmap"},
		Running: []tally.ProcessValues{
			{Store: "nixl.3.3.0.mmap", PID: 3, Instance: 1, Start: 17, Host: "host", LocalRank: "7", Values: randomValues(r, 4)},
			{Store: "nixl.4.4.0.mmap", PID: 4, Host: "host", Values: randomValues(r, 0)}, // with other bounds
		},
	}
	before := randomValues(r, 4)
	p.Running[0].Before = &before
	p.Base.Others = []tally.Other{{Sum: tally.Sum{Lo: 5}, Last: 2}, {}}
	return p
}

func TestProcessesAreRestored(t *testing.T) {
	want, got := storedProcesses(rand.New(rand.NewPCG(1, 1))), new(tally.Processes)
	must.OK(t, got.RestoreTotals(want.AppendTotals(nil)))
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("(-stored +restored)\n%s", d)
	}
}

// The totals of a ring and of processes aren't mistaken for each other.
func TestOtherBytesAreNotRestoredAsProcesses(t *testing.T) {
	s := shape(t, tally.Config{})
	stored := storedProcesses(rand.New(rand.NewPCG(1, 1))).AppendTotals(nil)
	for name, b := range map[string][]byte{
		"a ring": tally.NewAgent(s).AppendTotals(nil), "nothing": nil, "truncated": stored[:len(stored)-1], "too long": append(stored, 0),
		"JSON": []byte(`{"Version":1,"Start":0,"Bounds":[1]}`),
	} {
		if err := new(tally.Processes).RestoreTotals(b); !errors.Is(err, tally.ErrCheckpoint) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	if err := tally.NewAgent(s).RestoreTotals(stored); !errors.Is(err, tally.ErrCheckpoint) {
		t.Errorf("processes as a ring: error is %v", err)
	}
}

// FuzzProcesses restores arbitrary bytes. If they are accepted, storing the totals again
// returns the same bytes, and the totals can be added up.
func FuzzProcesses(f *testing.F) {
	f.Add(storedProcesses(rand.New(rand.NewPCG(1, 1))).AppendTotals(nil))
	f.Add(new(tally.Processes).AppendTotals(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p, again tally.Processes
		if p.RestoreTotals(b) != nil {
			return
		}
		must.OK(t, again.RestoreTotals(p.AppendTotals(nil)))
		if d := cmp.Diff(p, again, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()); d != "" {
			t.Errorf("(-restored +restored again)\n%s", d)
		}
		for i := range p.Running {
			p.Base.Add(&p.Running[i].Values)
		}
		if _, err := tally.ImportShape(p.Bounds, true); err != nil {
			t.Errorf("bounds: %v", err)
		}
	})
}
