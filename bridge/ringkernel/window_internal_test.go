package ringkernel

import "testing"

// Nothing runs for a Runtime that is closed, whatever its kernels do.
func TestNoTimerAfterClose(t *testing.T) {
	for _, before := range []int{0, 1} { // messages
		rt, err := NewRuntime()
		if err != nil {
			t.Fatal(err)
		}
		k := rt.Register("k")
		for range before {
			k.Received()
		}
		if err := rt.Close(); err != nil {
			t.Fatal(err)
		}
		k.Received()
		if rt.window.timer.Stop() {
			t.Errorf("with %d messages before, one after Close started the timer", before)
		}
	}
}
