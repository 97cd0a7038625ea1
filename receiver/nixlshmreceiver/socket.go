// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/live"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// socket serves frames to the clients of a Unix socket. It has a goroutine that accepts them,
// and one per client, which waits for requests. Draining waits for neither.
type socket struct {
	engine   observed
	log      *zap.Logger
	now      func() time.Time
	frame    live.Frame // without agents
	listener *live.Listener
	patience time.Duration // with a client that doesn't read

	mu      sync.Mutex
	clients map[*socketClient]struct{}
	closed  bool
	done    sync.WaitGroup
}

// observed is the part of the engine that a socket uses.
type observed interface {
	Look(ctx context.Context) ([]engine.Snapshot, error)
	State() engine.State
	Watch(w *engine.Watch)
	Unwatch(w *engine.Watch)
}

const (
	// maxClients limits the clients, and the memory that they need.
	maxClients = 16
	// clientPatience is how long a client may take to read a frame.
	clientPatience = 5 * time.Second
	// retryAccept is the pause after an error.
	retryAccept = 100 * time.Millisecond
	// maxRequest limits the size of a request.
	maxRequest = 1 << 16
)

// openSocket starts serving. A socket that can't be served doesn't prevent the receiver from
// working, so the error is only logged.
func (r *ringReceiver) openSocket() *socket {
	listener, err := live.Listen(r.cfg.Socket)
	if err != nil {
		r.log.Error("The socket is not served, so nixlring can't show what this Collector counts", zap.String("socket", r.cfg.Socket), zap.Error(err))
		return nil
	}
	return newSocket(listener, r.rings, r.log, r.now, live.Frame{Host: r.builder.hostname, Collector: live.Collector{
		PID: os.Getpid(), Program: filepath.Base(os.Args[0]), Consumes: r.cfg.Mode == ringbuf.Consume,
	}})
}

func newSocket(l *live.Listener, e observed, log *zap.Logger, now func() time.Time, frame live.Frame) *socket {
	s := &socket{
		engine: e, log: log, now: now, listener: l, patience: clientPatience, clients: make(map[*socketClient]struct{}), frame: frame,
	}
	s.done.Go(s.accept)
	return s
}

// close disconnects all clients, and removes the socket.
func (s *socket) close() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	s.closed = true
	for c := range s.clients {
		_ = c.conn.Close()
	}
	s.mu.Unlock()
	err := s.listener.Close()
	s.done.Wait()
	return err
}

func (s *socket) accept() {
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many open files, for example
			s.log.Warn("A client of the socket was not accepted", zap.Error(err))
			<-time.After(retryAccept)
			continue
		}
		c := &socketClient{socket: s, conn: conn, peaks: make(map[string]int), transfers: make(map[string]*agentTransfers)}
		if err := s.add(c); err != nil {
			_ = c.fail(err)
			_ = conn.Close()
			continue
		}
		s.done.Go(c.serve)
	}
}

func (s *socket) add(c *socketClient) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errors.New("the Collector is shutting down")
	case len(s.clients) >= maxClients:
		return fmt.Errorf("the Collector already serves %d clients: end one of them", maxClients)
	}
	s.clients[c] = struct{}{}
	return nil
}

func (s *socket) remove(c *socketClient) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
}

// look returns the state of all agents, for a client. The engine starts a new interval for the
// fill of the rings, so the other clients remember the highest fill.
func (s *socket) look(ctx context.Context, client *socketClient) ([]live.Agent, error) {
	snapshots, err := s.engine.Look(ctx)
	if err != nil {
		return nil, err
	}
	agents := make([]live.Agent, len(snapshots))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range snapshots {
		agents[i] = live.NewAgent(&snapshots[i])
		ring := agents[i].Ring
		if ring == nil {
			continue
		}
		for c := range s.clients {
			if c != client && ring.Peak > 0 {
				c.peaks[agents[i].ID] = max(c.peaks[agents[i].ID], ring.Peak)
			}
		}
		ring.Peak = max(ring.Peak, client.peaks[agents[i].ID])
	}
	clear(client.peaks)
	return agents, nil
}

// socketClient is a client of a socket.
type socketClient struct {
	*socket
	conn  net.Conn
	peaks map[string]int // highest fill of rings in frames of other clients, by ID; guarded by socket.mu

	conditions live.Conditions
	watch      *engine.Watch // nil unless the client wants transfers

	transfersMu sync.Mutex
	transfers   map[string]*agentTransfers // by ID
}

// serve answers requests until the client disconnects or doesn't read.
func (c *socketClient) serve() {
	defer c.remove(c)
	defer c.conn.Close()
	defer c.setWatch(nil)
	requests := bufio.NewScanner(c.conn)
	requests.Buffer(nil, maxRequest)
	for requests.Scan() {
		if line := bytes.TrimSpace(requests.Bytes()); len(line) > 0 {
			if err := c.answer(line); err != nil {
				c.log.Debug("Disconnected a client of the socket", zap.Error(err))
				return
			}
		}
	}
}

// answer answers a request. After an error, the client can't be served any longer.
func (c *socketClient) answer(line []byte) error {
	var r live.Request
	if err := json.Unmarshal(line, &r); err != nil {
		return c.fail(fmt.Errorf("the request is not valid: %w", err))
	}
	if r.Version != 0 && r.Version != live.Version {
		return c.fail(fmt.Errorf("the Collector serves version %d, but the client reads version %d; use programs of the same release", live.Version, r.Version))
	}
	f := c.frame
	f.Time, f.Agents = c.now(), []live.Agent{}
	if err := c.engine.State().Err(); err != nil {
		f.Problem = err.Error()
	}
	if !r.NoTotals {
		var err error
		if f.Agents, err = c.look(context.Background(), c); err != nil {
			return c.fail(err)
		}
	}
	c.addTransfers(&f)
	c.setWatch(r.Transfers)
	return c.send(&f)
}

// fail sends an error, and returns it.
func (c *socketClient) fail(err error) error {
	f := c.frame
	f.Time, f.Error = c.now(), err.Error()
	return errors.Join(err, c.send(&f))
}

func (c *socketClient) send(f *live.Frame) error {
	line, err := f.Marshal()
	if err != nil {
		return err
	}
	if err := c.conn.SetWriteDeadline(time.Now().Add(c.patience)); err != nil {
		return err
	}
	_, err = c.conn.Write(line)
	return err
}
