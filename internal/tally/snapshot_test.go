// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Later events don't change a snapshot.
func TestSnapshotIsIndependentOfTheAgent(t *testing.T) {
	for name, config := range configs() {
		for _, l := range ringbuf.Layouts() {
			t.Run(name+"/"+l.String(), func(t *testing.T) {
				s := shapeOf(t, config)
				g := generator{rand.New(rand.NewPCG(1, 1)), l}
				agent := NewAgent(s)
				for range 5 {
					feed(t, agent, l, g.events(300))
					want := pointsOf(&agent.Totals)
					got := agent.Snapshot()
					feed(t, agent, l, g.events(300))
					agent.Restarted()
					if d := cmp.Diff(want, pointsOf(got), cmpopts.EquateEmpty()); d != "" {
						t.Fatalf("(-agent +snapshot)\n%s", d)
					}
				}
			})
		}
	}
}
