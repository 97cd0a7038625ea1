// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose_test

import (
	"fmt"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// If nothing drains rings, or another program does, the agent that is slow comes first.
func TestAMissingOrForeignConsumerIsOneFindingBelowAStraggler(t *testing.T) {
	for _, consumer := range []diagnose.Consumer{diagnose.Nobody, diagnose.Foreign} {
		for _, full := range []bool{false, true} {
			var rings []diagnose.Ring
			for i := range 64 {
				rings = append(rings, diagnose.Ring{Agent: diagnose.Agent{Name: fmt.Sprint("decode-", i)}, Up: diagnose.Yes, Consumer: consumer, Full: full})
			}
			straggler := diagnose.Finding{Kind: diagnose.Straggler, Severity: diagnose.Warning, Agents: []diagnose.Agent{rings[7].Agent}}
			list := diagnose.AddRings([]diagnose.Finding{straggler}, rings)
			if len(list) != 2 || list[0].Kind != diagnose.Straggler || len(list[1].Agents) != 64 {
				t.Errorf("consumer %v, full %v: %+v", consumer, full, list)
			}
		}
	}
}
