package discover

import "sync"

// mailbox takes requests from any goroutine without ever blocking it.
type mailbox struct {
	mu       sync.Mutex
	requests []func()
	closed   bool
	arrived  chan struct{} // has room for one signal
}

// put adds a request, and reports whether it will be taken.
func (m *mailbox) put(fn func()) bool {
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

// take returns the requests in order, the last ones if the mailbox is to close.
func (m *mailbox) take(last bool) []func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	requests := m.requests
	m.requests, m.closed = nil, last
	return requests
}
