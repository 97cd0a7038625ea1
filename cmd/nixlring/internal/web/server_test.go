// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/lab/golden"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/semconv"
)

var update = flag.Bool("update", false, "update the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var begin = time.Unix(1_800_000_000, 0).UTC()

// frame returns the state of five agents. The second is slow.
func frame(second uint64) *diagnose.Frame { return frameOf(5, second) }

func frameOf(agents int, second uint64) *diagnose.Frame {
	f := &diagnose.Frame{Time: begin.Add(time.Duration(second) * time.Second)}
	for i := range agents {
		n, took := 100*(second+1), 0.001
		if i == 1 {
			took = 0.01
		}
		a := diagnose.Agent{
			Identity: diagnose.Identity{ID: fmt.Sprintf("/run/agent-%03d", i), Name: fmt.Sprintf("agent-%d", i)}, Layout: "v4", Up: diagnose.Yes,
			Attributes: map[string]string{"service.name": "decode"}, Moved: [2]diagnose.Moved{{Bytes: n << 20, Transfers: n, Seconds: float64(n) * took}},
			Events: 4 * n, Times: diagnose.Histogram{Bounds: semconv.TransferDuration.Bounds, Counts: make([]uint64, len(semconv.TransferDuration.Bounds)+1)},
			Ring: &diagnose.Ring{Capacity: 4096, Consumer: &diagnose.Consumer{PID: 3, Name: "otelcol"}},
		}
		at := map[float64]int{0.001: 5, 0.01: 9}[took]
		a.Times.Counts[at], a.Times.Counts[at+2] = n, 2*n
		switch i {
		case 0:
			a.Ring.Misses = second // isn't a problem
		case 2:
			memory := int64(1 << 30)
			a.Times.Counts[2], a.Memory = second/12, &memory
		case 3:
			a.Up, a.Ring, a.Store = diagnose.Unknown, nil, true
		}
		a.Transfers = []diagnose.Transfer{{Time: f.Time, Receive: true, Bytes: 1 << 20, Took: 0.5, Post: 0.25}}
		f.Agents = append(f.Agents, a)
	}
	return f
}

// ask returns the answer to a request to a page.
func ask(t *testing.T, p *Page, method, host, path string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	r.Host = host
	w := httptest.NewRecorder()
	p.Handler().ServeHTTP(w, r)
	return w
}

// answer is the state of a page as the browser sees it.
type answer struct {
	State struct {
		At       int64
		Notes    []string
		Findings []diagnose.Finding
		Rows     []json.RawMessage
	}
	Agent *details
}

func stateOf(t *testing.T, p *Page, agent string) (a answer) {
	t.Helper()
	must.OK(t, json.Unmarshal(ask(t, p, http.MethodGet, "localhost", "/state.json?agent="+agent).Body.Bytes(), &a))
	return a
}

// The page needs these names and values.
func TestStateMatchesTheGoldenFile(t *testing.T) {
	p := New("/run", Window)
	var got bytes.Buffer
	answer := func(agent string) {
		must.OK(t, json.Indent(&got, ask(t, p, http.MethodGet, "localhost", "/state.json?agent="+agent).Body.Bytes(), "", " "))
		got.WriteString("\n")
	}
	answer("")
	for second := range uint64(13) {
		p.Add(frame(second), nil)
	}
	answer("/run/agent-004")
	golden.Compare(t, *update, "state.json", regexp.MustCompile(`\n +([0-9.]+,?)`).ReplaceAllString(got.String(), " $1"))
	if a := stateOf(t, p, "/run/other"); a.Agent != nil {
		t.Errorf("%+v", a.Agent)
	}
	for i := range 200 {
		p.processes = append(p.processes, diagnose.Process{PID: i, Command: fmt.Sprint("python", i)})
	}
	p.Add(frame(13), nil)
	if n := len(stateOf(t, p, "").State.Findings); n != 100 {
		t.Errorf("%d findings of %d processes", n, len(p.processes))
	}
}

// What was known stays on the page, with the time since when nothing is known.
func TestStateSurvivesFailedFrames(t *testing.T) {
	p := New("/run", Window)
	p.Add(nil, errors.New("no such directory"))
	if s := stateOf(t, p, "").State; cmp.Diff([]string{"no such directory"}, s.Notes) != "" {
		t.Errorf("%+v", s.Notes)
	}
	p.Add(frame(0), nil)
	p.Add(frame(1), nil)
	p.Add(nil, errors.New("it hangs"))
	s := stateOf(t, p, "").State
	got := fmt.Sprintf("%d rows, %d ms: %q", len(s.Rows), s.At-begin.UnixMilli(), s.Notes)
	if want := fmt.Sprintf("5 rows, 1000 ms: [%q]", "no data since "+begin.Add(time.Second).Format(time.TimeOnly)+": it hangs"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestPageAnswersOnlyRequestsOfThisHost(t *testing.T) {
	p := New("/run", Window)
	var got bytes.Buffer
	for _, request := range []string{
		"GET 127.0.0.1:9470 /", "GET [::1]:9470 /app.js", "HEAD LocalHost /charts.js", "GET localhost:1 /state.json", "GET localhost /none",
		"GET evil.example /state.json", // DNS rebinding
		"GET localhost.evil.example:9470 /", "POST localhost /state.json",
	} {
		words := strings.Fields(request)
		r := ask(t, p, words[0], words[1], words[2])
		fmt.Fprintf(&got, "%s: %d\n", request, r.Code)
		must.OK(t, r.Header().WriteSubset(&got, map[string]bool{"Accept-Ranges": true, "Content-Length": true}))
	}
	golden.Compare(t, *update, "headers.txt", strings.ReplaceAll(got.String(), "\r\n", "\n"))
}

// played is a source of frames, and then of the end of a recording. A frame that is nil fails.
type played struct {
	fleet.Source

	frames []*diagnose.Frame
}

func (s *played) Next(context.Context) (*diagnose.Frame, error) {
	if len(s.frames) == 0 {
		return nil, io.EOF
	}
	f := s.frames[0]
	if s.frames = s.frames[1:]; f == nil {
		return nil, errors.New("it hangs")
	}
	return f, nil
}

func TestPageShowsFramesAndProcessesUntilItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p, searches, done := New("/run", Window), 0, make(chan struct{})
		go func() {
			defer close(done)
			p.Run(ctx, &played{frames: []*diagnose.Frame{frame(0), nil, frame(3)}}, func() []diagnose.Process {
				searches++
				return []diagnose.Process{{PID: 7, Command: "python3"}}
			})
		}()
		synctest.Wait()
		s := stateOf(t, p, "").State
		if f := s.Findings; s.At != begin.Add(3*time.Second).UnixMilli() || len(f) != 2 || f[1].Kind != diagnose.NoTelemetry {
			t.Errorf("%+v", s)
		}
		time.Sleep(30 * time.Second) // synctest
		synctest.Wait()
		cancel()
		if <-done; searches != 2 {
			t.Errorf("%d searches for processes", searches)
		}
	})
}

func TestServerEndsWithItsContextOrItsListener(t *testing.T) {
	for _, broken := range []bool{false, true} {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		must.OK(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- New("/run", Window).Serve(ctx, l) }()
		if broken {
			must.OK(t, l.Close())
		} else {
			cancel()
		}
		if err := <-done; (err != nil) != broken {
			t.Error(err)
		}
		cancel()
	}
}

func TestNumbersHaveFourDigits(t *testing.T) {
	for n, want := range map[number]string{
		0: "0", 3: "3", -1: "-1", 1.0 / 3: "0.3333", 123456: "123456", 1e6: "1e+06", 1.23456e9: "1.235e+09",
		number(math.NaN()): "null", number(math.Inf(1)): "null",
	} {
		if got := string(encode(n)); got != want {
			t.Errorf("%v is %s, want %s", float64(n), got, want)
		}
	}
}

// Otherwise, the page would show only green tiles about a finding.
func TestEachKindHasATile(t *testing.T) {
	p := New("/run", Window)
	p.Add(frameOf(1, 0), nil)
	tiles := make(map[diagnose.Kind]int)
	for _, c := range p.newState().Checks {
		for _, k := range c.Kinds {
			tiles[k]++
		}
	}
	for _, k := range diagnose.Kinds() {
		if tiles[k] != 1 {
			t.Errorf("%s is in %d tiles", k, tiles[k])
		}
	}
}

// BenchmarkFrame measures a frame of 256 agents with one straggler, after half an hour, and an answer.
func BenchmarkFrame(b *testing.B) {
	p := New("/run", Window)
	second := uint64(0)
	add := func() {
		p.Add(frameOf(256, second), nil)
		second += 2
	}
	for second < 1800 {
		add()
	}
	for b.Loop() {
		add()
		b.SetBytes(int64(len(p.answer(""))))
	}
}
