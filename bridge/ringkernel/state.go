package ringkernel

import "fmt"

// State is where a kernel is in its life.
type State uint8

// The states of a kernel, in the order in which it goes through them. An
// active kernel and a deactivated one may become each other.
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

// String is the state's name in lower case, as the attribute
// ringkernel.kernel.state has it.
func (s State) String() string {
	if s >= states {
		return fmt.Sprintf("State(%d)", uint8(s))
	}
	return stateNames[s]
}
