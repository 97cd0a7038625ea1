// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import "sync"

// mailbox queues messages without ever blocking the sender.
type mailbox struct {
	arrived chan struct{} // buffer of one signal

	mu       sync.Mutex
	messages []Message
	after    func(Message) // called with messages once the mailbox is closed
}

func newMailbox() *mailbox { return &mailbox{arrived: make(chan struct{}, 1)} }

func (m *mailbox) put(message Message) {
	m.mu.Lock()
	after := m.after
	if after == nil {
		m.messages = append(m.messages, message)
	}
	m.mu.Unlock()
	if after != nil {
		after(message)
		return
	}
	select {
	case m.arrived <- struct{}{}:
	default:
	}
}

// take returns the messages that have arrived. Later messages are stored in into, so the
// caller must alternate between two slices.
func (m *mailbox) take(into []Message) []Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	messages := m.messages
	m.messages = into[:0]
	return messages
}

// close calls after for all messages that weren't taken and for all later messages.
func (m *mailbox) close(after func(Message)) {
	m.mu.Lock()
	m.after = after
	left := m.messages
	m.messages = nil
	m.mu.Unlock()
	for _, message := range left {
		after(message)
	}
}
