package drain

import "sync"

// mailbox takes messages from any goroutine without ever blocking it.
type mailbox struct {
	mu       sync.Mutex
	messages []Message
	arrived  chan struct{} // has room for one signal
}

func newMailbox() *mailbox { return &mailbox{arrived: make(chan struct{}, 1)} }

func (m *mailbox) put(message Message) {
	m.mu.Lock()
	m.messages = append(m.messages, message)
	m.mu.Unlock()
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
