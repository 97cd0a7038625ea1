package ringkernel

import "fmt"

// State is where a kernel is in its life.
type State uint8

// The states of a kernel, in the order in which it goes through them. A kernel
// may skip states but never goes back, except from deactivated to active.
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

func (s State) mayBecome(next State) bool {
	return next >= s || s == StateDeactivated && next == StateActive
}

// SetState sets the state of the kernel, which starts as [StateCreated]. It
// returns an error and changes nothing if s is no state, or one that the
// kernel can't go back to. The uptime of a terminated kernel stops.
func (k *Kernel) SetState(s State) error {
	switch {
	case k == nil:
		return nil
	case s >= states:
		return fmt.Errorf("set the state of ring kernel %q: %v is no state", k.id, s)
	}
	for {
		old := State(k.state.Load())
		if old == s {
			return nil
		}
		if !old.mayBecome(s) {
			return fmt.Errorf("set the state of ring kernel %q: a %v kernel can't become %v; "+
				"to start it again, unregister and register it", k.id, old, s)
		}
		if k.state.CompareAndSwap(uint32(old), uint32(s)) {
			break
		}
	}
	if s == StateTerminated {
		k.ended.advance(k.runtime.clock())
	}
	return nil
}
