// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import "testing"

// A reset comes between the two stores of a latency's range.
func TestLongestLatencyIsAtLeastTheShortest(t *testing.T) {
	var l latencies
	l.restart()
	l.shortest.Store(5)
	if shortest, longest, ok := l.read(); shortest != 5 || longest != 5 || !ok {
		t.Errorf("latencies from %v to %v, %t, want 5ns to 5ns", shortest, longest, ok)
	}
}
