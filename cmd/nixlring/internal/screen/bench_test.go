// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// BenchmarkRedraw measures an update of the screen with 256 busy agents: processing a frame and drawing the
// text.
func BenchmarkRedraw(b *testing.B) {
	f := &agents{make: func(second uint64) (list []diagnose.Agent) {
		for i := range uint64(256) {
			list = append(list, agent(fmt.Sprintf("agent-%d", i), second, 100+i+second%7))
		}
		return list
	}}
	m := New(Config{Name: "/run/nixl", Window: fleet.DefaultWindow, Next: f.next})
	send(m, tea.WindowSizeMsg{Width: 200, Height: 60})
	for b.Loop() {
		m.Update(m.next())
		_ = m.View()
	}
}
