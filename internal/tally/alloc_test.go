// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"math/rand/v2"
	"testing"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Only the first event of a name allocates.
func TestAddDoesNotAllocate(t *testing.T) {
	for name, config := range configs() {
		for _, l := range ringbuf.Layouts() {
			t.Run(name+"/"+l.String(), func(t *testing.T) {
				events := generator{rand.New(rand.NewPCG(1, 9)), l}.events(slots - 1)
				agent := NewAgent(shapeOf(t, config))
				b := batchOf(t, l, events...)
				for _, watched := range []bool{false, true} {
					if watched {
						agent.Watch(Watch{Transfer: func(*Transfer) {}, Error: func(Error) {}})
					}
					agent.Add(b)
					if n := testing.AllocsPerRun(10, func() { agent.Add(b) }); n != 0 {
						t.Errorf("watched %v: %v allocations", watched, n)
					}
				}
			})
		}
	}
}
