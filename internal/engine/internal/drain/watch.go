// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// Watch is a [tally.Watch] for all agents. Draining waits for its functions.
type Watch struct {
	Transfer func(*Agent, *tally.Transfer) // valid until it returns; may be nil
	Error    func(*Agent, tally.Error)     // may be nil
}

// watching begins a watch of all agents.
type watching struct{ watch *Watch }

func (m watching) apply(o *owner, _ time.Time) {
	o.watches = append(o.watches, m.watch)
	for _, a := range o.agents {
		o.watch(a)
	}
}

// watch makes the agent's totals pass transfers and errors to all watches.
func (o *owner) watch(a *agent) {
	list := make([]tally.Watch, len(o.watches))
	for i, w := range o.watches {
		if w.Transfer != nil {
			list[i].Transfer = func(t *tally.Transfer) { w.Transfer(&a.Agent, t) }
		}
		if w.Error != nil {
			list[i].Error = func(e tally.Error) { w.Error(&a.Agent, e) }
		}
	}
	a.tally.Watch(list...)
}
