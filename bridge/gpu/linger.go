// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
)

// lingering is how long the last figures of a closed Monitor are reported: the
// SDK's default export interval, so that the last export includes them.
const lingering = time.Minute

// closed are the Monitors that may still report their last figures. New ends
// this, because the SDK adds up what two callbacks observe.
var closed struct {
	mu       sync.Mutex
	monitors []*Monitor
}

// linger lets a Monitor that is being closed report its last figures. The caller
// holds its lock.
func (m *Monitor) linger() {
	m.last, m.until = m.read(), time.Now().Add(lingering)
	closed.mu.Lock()
	defer closed.mu.Unlock()
	closed.monitors = append(closed.monitors, m)
}

// unregisterClosed ends the callbacks of closed Monitors.
func unregisterClosed() {
	closed.mu.Lock()
	defer closed.mu.Unlock()
	for _, m := range closed.monitors {
		if err := m.registration.Unregister(); err != nil {
			otel.Handle(fmt.Errorf("unregister the callback of the GPUs' instruments: %w", err))
		}
	}
	closed.monitors = nil
}
