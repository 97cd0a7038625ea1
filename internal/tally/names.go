// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

// Names limits the number of series of several agents together, in addition to the limit of
// each agent. It is not safe for concurrent use. A nil *Names has no limit.
type Names struct {
	limit, used int
	agents      int
	exceeded    bool
	reported    bool // by Exceeded
}

// NewNames returns a Names without agents.
func NewNames(limit int) *Names { return &Names{limit: limit} }

// Unused reports whether n limits no agent.
func (n *Names) Unused() bool { return n.agents == 0 }

// Exceeded reports whether events were counted as overflow because of this limit. It
// returns true only once, until an agent is released.
func (n *Names) Exceeded() bool {
	if n == nil || !n.exceeded || n.reported {
		return false
	}
	n.reported = true
	return true
}

func (n *Names) full() bool {
	if n == nil || n.used < n.limit {
		return false
	}
	n.exceeded = true
	return true
}

// Limit makes the agent's series count in n. It may exceed the limit by the series that the
// agent already has.
func (a *Agent) Limit(n *Names) {
	if n != nil {
		n.used += len(a.Series())
		n.agents++
	}
	a.names.shared = n
}

// Release is the reverse of Limit.
func (a *Agent) Release() {
	if n := a.names.shared; n != nil {
		n.used -= len(a.Series())
		n.agents--
		n.exceeded, n.reported = false, false
	}
	a.names.shared = nil
}
