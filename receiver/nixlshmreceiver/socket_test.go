// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.uber.org/zap"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/live"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// served is an engine with a number of agents, which counts looks.
type served struct {
	agents int
	peak   int // of all rings at the next look
	looks  atomic.Int64

	mu      sync.Mutex
	watches []*engine.Watch
}

func (s *served) Look(context.Context) ([]engine.Snapshot, error) {
	s.looks.Add(1)
	shape, err := tally.NewShape(tally.Config{})
	if err != nil {
		return nil, err
	}
	var list []engine.Snapshot
	for i := range s.agents {
		a := tally.NewAgent(shape)
		a.Found(s.peak, 64)
		id := fmt.Sprintf("agent-%04d", i)
		list = append(list, engine.Snapshot{
			Agent:  engine.Agent{ID: id, Name: id, Path: "/rings/" + id},
			Stream: attribute.NewSet(attribute.String(semconv.ServiceName, "decode")), Totals: a.Look(),
		})
	}
	return list, nil
}

func (*served) State() engine.State { return engine.State{} }

func (s *served) Watch(w *engine.Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches = append(s.watches, w)
}

func (s *served) Unwatch(w *engine.Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches = without(s.watches, w)
}

func (s *served) watching() []*engine.Watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*engine.Watch(nil), s.watches...)
}

func without(list []*engine.Watch, w *engine.Watch) (rest []*engine.Watch) {
	for _, one := range list {
		if one != w {
			rest = append(rest, one)
		}
	}
	return rest
}

// serve serves e on a socket, and returns its path.
func serve(t *testing.T, e observed, change ...func(*socket)) (path string, s *socket) {
	t.Helper()
	path = socketPath(t)
	l, err := live.Listen(path)
	must.OK(t, err)
	s = newSocket(l, e, zap.NewNop(), time.Now, live.Frame{Host: testHost})
	for _, f := range change {
		f(s)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return path, s
}

// socketPath returns a path that is short enough for a socket.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "nixl") //nolint:usetesting // t.TempDir may be too long for a socket
	must.OK(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "run", "s")
}

func dial(t *testing.T, path string) *live.Client {
	t.Helper()
	c, err := live.Dial(t.Context(), path)
	must.OK(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func frame(t *testing.T, c *live.Client, r live.Request) *live.Frame {
	t.Helper()
	f, err := c.Next(t.Context(), r)
	must.OK(t, err)
	return f
}

func TestSocketServesWhatTheReceiverCounts(t *testing.T) {
	dir := t.TempDir()
	path := socketPath(t)
	h := newHarness(t, dir, never, func(cfg *Config) { cfg.Socket, cfg.Resource = path, map[string]string{"k8s.cluster.name": "east"} })
	w := ring(t, dir, "decode-0", ringbuf.V4, 64)
	h.start()
	c := dial(t, path)
	push(t, w, write(1000, 20, 3)...)
	push(t, w, write(2000, 30, 4)...)
	push(t, w, ringbuf.NewEvent(ringbuf.TypeErrBackend, 1))
	f := frame(t, c, live.Request{})
	if f.Host != testHost || !f.Collector.Consumes || f.Collector.PID != os.Getpid() || len(f.Agents) != 1 {
		t.Fatalf("%+v", f)
	}
	a := f.Agents[0]
	if a.Name != "decode-0" || a.Attributes[semconv.ServiceName] != "nixl" || a.Attributes["k8s.cluster.name"] != "east" || a.Layout != "v4" || a.Ring.Capacity != 64 || a.Ring.Peak < 1 {
		t.Errorf("%+v, ring %+v", a, a.Ring)
	}
	got := *a.Totals
	got.Durations, got.PostDurations, got.Throughput, got.Sizes, got.Memory = live.Histogram{}, live.Histogram{}, live.Histogram{}, live.Histogram{}, nil
	want := live.Totals{Transmitted: 3000, Transfers: 2, Busy: 50, Post: 7, Errors: map[string]uint64{"backend": 1}, Events: 9}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(live.Histogram{})); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if bounds, counts := a.Totals.Durations.Explicit(); !cmp.Equal(bounds, semconv.TransferDuration.Bounds) || counts[1]+counts[2] != 2 {
		t.Errorf("durations: %v in %v", counts, bounds)
	}
	if got := one(t, h.shutdown()).int(transmitted); got != 3000 {
		t.Errorf("%d bytes were exported, want 3000", got)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket still exists")
	}
}

func TestSocketThatCannotBeServedStopsNothing(t *testing.T) {
	dir := t.TempDir()
	path, _ := serve(t, &served{})
	h := newHarness(t, dir, never, func(cfg *Config) { cfg.Socket = path })
	w := ring(t, dir, "agent", ringbuf.V4, 64)
	h.start()
	h.log("The socket is not served", "another Collector or receiver serves "+path)
	push(t, w, write(5, 1, 1)...)
	if got := one(t, h.shutdown()).int(transmitted); got != 5 {
		t.Errorf("%d bytes transmitted, want 5", got)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != fs.ModeSocket {
		t.Errorf("the other's socket: %v, %v", info, err)
	}
}

func TestSocketWithoutRequestsCostsNothing(t *testing.T) {
	e := &served{agents: 1}
	path, s := serve(t, e)
	c := dial(t, path)
	must.EventuallyTrue(t, "a client", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.clients) == 1 })
	frame(t, c, live.Request{NoTotals: true})
	if n := e.looks.Load(); n != 0 || len(e.watching()) > 0 {
		t.Errorf("%d looks, %d watches", n, len(e.watching()))
	}
	frame(t, c, live.Request{})
	if n := e.looks.Load(); n != 1 {
		t.Errorf("%d looks, want 1", n)
	}
}

func TestClientThatDoesNotReadIsDisconnected(t *testing.T) {
	e := &served{agents: 2000}
	path, s := serve(t, e, func(s *socket) { s.patience = 50 * time.Millisecond })
	conn, err := new(net.Dialer).DialContext(t.Context(), "unix", path)
	must.OK(t, err)
	defer conn.Close()
	if _, err := conn.Write([]byte(`{"transfers":{"most":1}}` + strings.Repeat("\n{}", 100) + "\n")); err != nil {
		t.Fatal(err)
	}
	must.EventuallyTrue(t, "end of the client", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return e.looks.Load() > 0 && len(s.clients) == 0
	})
	must.EventuallyTrue(t, "end of the watch", func() bool { return len(e.watching()) == 0 })
	if n := e.looks.Load(); n > 50 {
		t.Errorf("%d looks for a client that doesn't read", n)
	}
	frame(t, dial(t, path), live.Request{NoTotals: true}) // others are served
}

func TestWrongRequestsAreAnsweredWithTheReason(t *testing.T) {
	path, _ := serve(t, &served{})
	for request, want := range map[string]string{
		`{"version":9}`:            "serves version 1, but the client reads version 9",
		`[]`:                       "the request is not valid",
		`{"later":[1,{"x":null}]}`: "",
		`{}`:                       "",
	} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "unix", path)
		must.OK(t, err)
		if _, err := fmt.Fprintln(conn, request); err != nil {
			t.Fatal(err)
		}
		answer, err := bufio.NewReader(conn).ReadBytes('\n')
		if err != nil {
			t.Fatalf("%s: %v", request, err)
		}
		var f live.Frame
		if err := json.Unmarshal(answer, &f); err != nil || f.Version != 1 || want == "" != (f.Error == "") || !strings.Contains(f.Error, want) {
			t.Errorf("%s: the answer is %s, %v; want %s", request, answer, err, want)
		}
		_ = conn.Close()
	}
}

func TestNumberOfClientsIsLimited(t *testing.T) {
	path, _ := serve(t, &served{})
	for range maxClients {
		frame(t, dial(t, path), live.Request{NoTotals: true})
	}
	if _, err := dial(t, path).Next(t.Context(), live.Request{NoTotals: true}); err == nil || !strings.Contains(err.Error(), "already serves 16 clients") {
		t.Errorf("the answer to one more client is %v", err)
	}
}

func TestEachClientGetsTheHighestFillSinceItsOwnFrame(t *testing.T) {
	e := &served{agents: 1}
	path, _ := serve(t, e)
	a, b := dial(t, path), dial(t, path)
	for i, tt := range []struct {
		client     *live.Client
		peak, want int
	}{{a, 5, 5}, {b, 9, 9}, {a, 2, 9}, {a, 1, 1}, {b, 0, 2}, {b, 0, 0}} {
		e.peak = tt.peak
		if got := frame(t, tt.client, live.Request{}).Agents[0].Ring.Peak; got != tt.want {
			t.Errorf("frame %d: the highest fill is %d, want %d", i, got, tt.want)
		}
	}
}

func TestClientGetsTheSlowestTransfersSinceItsFrame(t *testing.T) {
	e := &served{agents: 1}
	path, _ := serve(t, e)
	c := dial(t, path)
	request := live.Request{NoTotals: true, Transfers: &live.Conditions{SlowTransfer: 10, Most: 2}}
	if got := frame(t, c, request).Agents; len(got) > 0 {
		t.Errorf("%+v before the first transfer", got)
	}
	must.EventuallyTrue(t, "a watch", func() bool { return len(e.watching()) == 1 })
	w := e.watching()[0]
	for _, took := range []uint64{30, 10, 11, 50, 40} {
		w.Transfer(&engine.Agent{ID: "agent-0000", Name: "agent-0000"}, &tally.Transfer{Duration: took, Bytes: 7})
	}
	got := frame(t, c, request).Agents
	if len(got) != 1 || got[0].Omitted != 2 || len(got[0].Transfers) != 2 || got[0].Transfers[0].Took != 50 || got[0].Transfers[1].Took != 40 {
		t.Errorf("%+v", got)
	}
	if got := frame(t, c, request).Agents; len(got) > 0 {
		t.Errorf("%+v are repeated", got)
	}
	frame(t, c, live.Request{NoTotals: true})
	if n := len(e.watching()); n > 0 {
		t.Errorf("%d watches after the client wants no transfers", n)
	}
}
