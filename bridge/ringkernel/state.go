// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"fmt"
	"time"
)

// State is the state of a kernel.
type State uint8

// The states of a kernel.
const (
	StateCreated State = iota
	StateLaunched
	StateActive
	StateDeactivated
	StateTerminating
	StateTerminated

	states = iota
)

var stateNames = [states]string{"created", "launched", "active", "deactivated", "terminating", "terminated"}

// String returns the state's name in lower case, as in the attribute
// ringkernel.kernel.state.
func (s State) String() string {
	if s >= states {
		return fmt.Sprintf("State(%d)", uint8(s))
	}
	return stateNames[s]
}

// MarshalText returns the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// SetState sets the kernel's state, which is initially [StateCreated]. Invalid states are
// ignored. The uptime of a terminated kernel no longer increases. If the kernel returns to
// StateCreated, it restarts: its snapshots do as with [Runtime.Reset].
func (k *Kernel) SetState(s State) {
	if k == nil || s >= states {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state == s {
		return
	}
	k.state, k.ended = s, time.Time{}
	switch now := time.Now(); s {
	case StateTerminated:
		k.ended = now
	case StateCreated:
		k.reset(now)
	}
}
