// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"net/http"
	"time"
)

const (
	// mostClients limits the number of browsers.
	mostClients = 32
	// queued is the number of events for which a browser may be late.
	queued = 16
)

// client is a browser that receives events.
type client struct {
	events chan []byte // closed when the browser is disconnected
	hangUp func()      // fails the current and all further writes
}

// send queues an event for all clients. It disconnects those that don't keep up. Page.mu is held.
func (p *Page) send(event []byte) {
	for c := range p.clients {
		select {
		case c.events <- event:
		default:
			p.remove(c)
			c.hangUp()
		}
	}
}

// remove removes a client, unless it was removed already. Page.mu is held.
func (p *Page) remove(c *client) {
	if p.clients[c] {
		delete(p.clients, c)
		close(c.events)
	}
}

// join adds a client and returns the events so far. It reports false if there are too many clients.
func (p *Page) join(c *client) (events []byte, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.clients) >= mostClients {
		return nil, false
	}
	p.clients[c] = true
	events = event("hello", encode(p.newHello(p.started)))
	events = append(events, pointsEvent(p.points...)...)
	return append(events, p.frame...), true
}

// leave removes a client.
func (p *Page) leave(c *client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(c)
}

// events serves the events until the browser closes the connection, or doesn't keep up.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	c := &client{events: make(chan []byte, queued), hangUp: func() {
		_ = control.SetWriteDeadline(time.Unix(1, 0)) // it fails only if the connection is closed already
	}}
	first, ok := p.join(c)
	if !ok {
		http.Error(w, "too many browsers show this page; close one", http.StatusServiceUnavailable)
		return
	}
	defer p.leave(c)
	w.Header().Set("Content-Type", "text/event-stream")
	c.serve(r.Context(), w, control, first)
}

// serve writes events until one can't be written, or there are no more.
func (c *client) serve(ctx context.Context, w http.ResponseWriter, control *http.ResponseController, event []byte) {
	for ok := true; ok; {
		if _, err := w.Write(event); err != nil {
			return
		}
		if err := control.Flush(); err != nil {
			return
		}
		select {
		case event, ok = <-c.events:
		case <-ctx.Done():
			return
		}
	}
}
