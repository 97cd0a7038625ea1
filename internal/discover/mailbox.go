// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import "sync"

// Mailbox takes requests from any goroutine without ever blocking it.
type Mailbox struct {
	mu       sync.Mutex
	requests []func()
	closed   bool
	arrived  chan struct{} // has room for one signal
}

// NewMailbox returns an empty Mailbox.
func NewMailbox() *Mailbox { return &Mailbox{arrived: make(chan struct{}, 1)} }

// Arrived returns a channel that has a value after requests were added.
func (m *Mailbox) Arrived() <-chan struct{} { return m.arrived }

// Put adds a request, and reports whether it will be taken.
func (m *Mailbox) Put(fn func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.requests = append(m.requests, fn)
	select {
	case m.arrived <- struct{}{}:
	default:
	}
	return true
}

// Take returns the requests in order, the last ones if the mailbox is to close.
func (m *Mailbox) Take(last bool) []func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	requests := m.requests
	m.requests, m.closed = nil, last
	return requests
}
