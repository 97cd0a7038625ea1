// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally_test

import (
	"os"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/oracle/ringoracle"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/tally"
)

func TestTotalsOfRealRingsMatchTheirJSON(t *testing.T) {
	for _, c := range ringtest.Cases(t) {
		if !c.Readable() {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			file, err := os.ReadFile(c.File)
			must.OK(t, err)
			mem := memory(len(file))
			copy(mem, file)
			r := openRing(t, mem)
			agent := tally.NewAgent(shape(t, tally.Config{}))
			agent.Opened(c.ReadPos == 0)
			if _, err := r.Read(0, agent.Add); err != nil {
				t.Fatal(err)
			}
			want, _ := ringoracle.Of(&c)
			compare(t, want, agent)
			if c.Agent() && agent.TornGroups() != 0 {
				t.Errorf("%d torn groups in a ring that was never full", agent.TornGroups())
			}
		})
	}
}
