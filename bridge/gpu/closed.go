// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
)

// reportClosed is how long the last values of a closed Monitor are reported: the SDK's
// default export interval, so that the last export includes them.
const reportClosed = time.Minute

// closed holds the closed Monitors whose callbacks are still registered. New
// unregisters them, because the SDK adds up the values of two callbacks.
var closed struct {
	mu       sync.Mutex
	monitors []*Monitor
}

// reportLast keeps the current values of a Monitor for collections after Close. The
// caller holds the Monitor's lock.
func (m *Monitor) reportLast() {
	m.last, m.until = m.read(), time.Now().Add(reportClosed)
	closed.mu.Lock()
	defer closed.mu.Unlock()
	closed.monitors = append(closed.monitors, m)
}

// unregisterClosed unregisters the callbacks of closed Monitors.
func unregisterClosed() {
	closed.mu.Lock()
	defer closed.mu.Unlock()
	for _, m := range closed.monitors {
		if err := m.registration.Unregister(); err != nil {
			otel.Handle(fmt.Errorf("unregister callback of GPU metrics: %w", err))
		}
	}
	closed.monitors = nil
}
