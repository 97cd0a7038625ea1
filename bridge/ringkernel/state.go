// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"fmt"
	"time"
)

// State is the state of a kernel.
type State uint8

// The states of a kernel, in order. A kernel may skip states, but can't return to
// an earlier one, except from deactivated to active, and from terminated to created, which
// restarts it.
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

func (s State) mayBecome(next State) bool {
	return next >= s || s == StateDeactivated && next == StateActive || s == StateTerminated && next == StateCreated
}

// SetState sets the kernel's state, which is initially [StateCreated]. If s is
// invalid, or an earlier state that the kernel can't return to, SetState returns an
// error and changes nothing. The uptime of a terminated kernel no longer increases. If the
// kernel restarts, its snapshots do as with [Runtime.Reset].
func (k *Kernel) SetState(s State) error {
	switch {
	case k == nil:
		return nil
	case s >= states:
		return fmt.Errorf("set state of ring kernel %q: %v is not a state", k.id, s)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.state == s:
		return nil
	case !k.state.mayBecome(s):
		return fmt.Errorf("set state of ring kernel %q: state %v can't change to %v; "+
			"to restart a terminated kernel, set the state created", k.id, k.state, s)
	}
	k.state = s
	switch now := time.Now(); s {
	case StateTerminated:
		k.ended = now
	case StateCreated:
		k.ended = time.Time{}
		k.reset(now)
	}
	return nil
}
