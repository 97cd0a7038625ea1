// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import "sync"

// mailbox takes messages from any goroutine without ever blocking it.
type mailbox struct {
	arrived chan struct{} // has room for one signal

	mu       sync.Mutex
	messages []Message
	after    func(Message) // takes the messages once the mailbox is closed
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

// take returns the messages that have arrived. They are valid until the next
// call but one: into is memory for those to come.
func (m *mailbox) take(into []Message) []Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	messages := m.messages
	m.messages = into[:0]
	return messages
}

// close has all messages that nobody has taken, and all later ones, passed to
// after.
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
