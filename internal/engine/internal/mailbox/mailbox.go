// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package mailbox passes values to a goroutine without ever blocking the sender.
package mailbox

import "sync"

// Mailbox is a queue of values for one goroutine. It has no limit. Its methods are safe for
// concurrent use, and don't block.
type Mailbox[T any] struct {
	arrived chan struct{} // buffer of one signal

	mu     sync.Mutex
	values []T
	closed bool
}

// New returns an empty mailbox.
func New[T any]() *Mailbox[T] { return &Mailbox[T]{arrived: make(chan struct{}, 1)} }

// Arrived returns a channel that has a value after a value was put into the mailbox.
func (m *Mailbox[T]) Arrived() <-chan struct{} { return m.arrived }

// Put adds a value. It reports false, and adds nothing, if the mailbox is closed.
func (m *Mailbox[T]) Put(value T) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.values = append(m.values, value)
	select {
	case m.arrived <- struct{}{}:
	default:
	}
	return true
}

// Take returns the values that have arrived, in order. Later values are stored in into, so the
// caller must alternate between two slices, or pass nil.
func (m *Mailbox[T]) Take(into []T) []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	values := m.values
	m.values = into[:0]
	return values
}

// Close closes the mailbox, and returns the values that weren't taken.
func (m *Mailbox[T]) Close() []T {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	return m.Take(nil)
}
