// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/top"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/semconv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var begin = time.Unix(1_800_000_000, 0)

// fleet returns a sample of agents after some seconds: 100 transfers of 16 MiB per second, 500 µs each.
// The first agent's take ten times as long.
func fleet(agents, second int, names ...string) top.Sample {
	s := top.Sample{At: begin.Add(time.Duration(second) * time.Second)}
	count := func(bounds []float64, value float64) []uint64 {
		counts := make([]uint64, len(bounds)+1)
		i, _ := slices.BinarySearch(bounds, value)
		counts[i] = uint64(100 * second)
		return counts
	}
	for i := range agents {
		name := fmt.Sprintf("agent-%d", i)
		if i < len(names) {
			name = names[i]
		}
		took := 500e-6
		if i == 0 {
			took *= 10
		}
		n := uint64(100 * second)
		s.Agents = append(s.Agents, top.Reading{
			ID: "/dir/" + name, Path: "/dir/" + name, Name: name, Attributes: map[string]string{"k8s.pod.uid": "0123", "k8s.pod.name": "decode-0", "k8s.namespace.name": "prod"}, Layout: "v4", Capacity: 4097, Peak: 1024, Alive: procs.Yes, Lock: top.Lock{PID: 1, Name: "otelcol"},
			Totals: top.Totals{
				Out: n << 24, Transfers: n, Took: uint64(took * 1e6 * float64(n)), Events: 4 * n,
				Duration: count(top.Bounds(), took), Post: count(top.Bounds(), took/10), Throughput: []uint64{}, Size: count(semconv.TransferSize.Bounds, 1<<24),
			},
		})
	}
	return s
}

// newPage returns a page with samples of a number of seconds.
func newPage(agents, seconds int, names ...string) *Page {
	p := New(Config{Name: "/dir", Slowest: func(path string) []top.Transfer {
		return []top.Transfer{{At: begin, Bytes: 1 << 20, Took: time.Second, Post: time.Millisecond, Receive: path == "/dir/agent-1"}}
	}})
	for second := 0; second <= seconds; second += 2 {
		p.Add(fleet(agents, second, names...))
	}
	return p
}

// stream is the connection of a browser.
type stream struct {
	t      *testing.T
	reader *bufio.Reader
}

// connect opens the events of a page.
func connect(t *testing.T, p *Page) *stream {
	t.Helper()
	server := httptest.NewServer(p.Handler())
	t.Cleanup(server.Close)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/events", nil)
	must.OK(t, err)
	response, err := server.Client().Do(request)
	must.OK(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	if got := response.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("Content-Type: %s", got)
	}
	return &stream{t, bufio.NewReader(response.Body)}
}

// next reads an event.
func (s *stream) next(name string, into any) {
	s.t.Helper()
	for _, want := range []string{"event: " + name + "\n", "data: ", "\n"} {
		line, err := s.reader.ReadString('\n')
		must.OK(s.t, err)
		if !strings.HasPrefix(line, want) {
			s.t.Fatalf("%.200q, want %q", line, want)
		}
		if want == "data: " {
			must.OK(s.t, json.Unmarshal([]byte(line[len(want):]), into))
		}
	}
}

// seen is what a browser reads.
type seen struct {
	hello  map[string]any
	points []struct {
		At     int64
		Agents [][]*float64
		Times  []uint64
		Sizes  []uint64
	}
	frame struct {
		At       int64
		Notes    []string
		Findings []struct {
			Kind, Who, What string
			Since           int64
		}
		Rows []struct {
			Name, Severity        string
			Problems              []string
			Speed, P50, Fill, Out float64
		}
	}
}

func (s *stream) start() (all seen) {
	s.t.Helper()
	s.next("hello", &all.hello)
	s.next("points", &all.points)
	s.next("frame", &all.frame)
	return all
}

func TestBrowserGetsTheHistoryAndThenEachSample(t *testing.T) {
	p := newPage(5, 20)
	s := connect(t, p)
	got := s.start()
	if got.hello["name"] != "/dir" || got.hello["start"] != float64(begin.UnixMilli()) || len(got.points) != 3 {
		t.Fatalf("%+v", got)
	}
	last := got.points[2]
	if last.At != begin.Add(18*time.Second).UnixMilli() || len(last.Agents) != 5 || *last.Agents[1][0] != 1 || len(last.Times) != len(top.Bounds())+1 {
		t.Errorf("%+v", last)
	}
	if i, _ := slices.BinarySearch(semconv.TransferSize.Bounds, 1<<24); last.Sizes[i] != 5000 {
		t.Errorf("sizes: %v", last.Sizes)
	}
	row := got.frame.Rows[0]
	if row.Name != "agent-0" || row.Severity != "warning" || fmt.Sprint(row.Problems) != "[straggler: 10% of peers]" {
		t.Errorf("the worst agent isn't first: %+v", row)
	}
	// Speeds are exact, quantiles are those of the histogram's bucket.
	if speed := row.Speed / (16 << 20 / 5e-3); speed < 0.999 || speed > 1.001 {
		t.Errorf("speed: %v", row.Speed)
	}
	if p50 := row.P50; p50 < 4e-3 || p50 > 5e-3 || row.Fill != 0.25 || row.Out != 1.678e9 {
		t.Errorf("%v", row)
	}
	f := got.frame.Findings[0]
	if f.Kind != "straggler" || f.Who != "agent-0" || f.Since != begin.Add(2*time.Second).UnixMilli() ||
		!strings.HasPrefix(f.What, "agent-0 moves data at 10% of the speed of its peers") {
		t.Errorf("%v", f)
	}
	p.Add(fleet(5, 22))
	s.next("frame", &got.frame)
	if got.frame.At != begin.Add(22*time.Second).UnixMilli() {
		t.Errorf("%+v", got.frame)
	}
	p.Add(fleet(5, 24))
	if s.next("points", &got.points); len(got.points) != 1 || got.points[0].At != begin.Add(24*time.Second).UnixMilli() {
		t.Errorf("%+v", got.points)
	}
}

func TestHistoryEndsAfterHalfAnHour(t *testing.T) {
	got := connect(t, newPage(1, 2400)).start()
	first, last := got.points[0].At, got.points[len(got.points)-1].At
	if length := time.Duration(last-first) * time.Millisecond; length > History || length < History-2*pointEvery || last != begin.Add(2400*time.Second).UnixMilli() {
		t.Errorf("%d points, %v", len(got.points), length)
	}
}

func TestPageWithoutAgents(t *testing.T) {
	p := New(Config{Name: "/dir"})
	p.Add(top.Sample{At: begin, Err: os.ErrNotExist, Warning: "a warning"})
	got := connect(t, p).start()
	if len(got.points) != 0 || len(got.frame.Rows) != 0 || !slices.Equal(got.frame.Notes, []string{"file does not exist", "a warning"}) {
		t.Errorf("%+v", got)
	}
}

func TestProcessesWithoutTelemetryAreFindings(t *testing.T) {
	p := New(Config{})
	p.processes = []diagnose.Process{{PID: 7, Command: "python3", Enable: "n"}}
	p.Add(fleet(1, 0))
	got := connect(t, p).start().frame.Findings
	if len(got) != 1 || got[0].Kind != "telemetry_disabled" || got[0].Who != "" {
		t.Errorf("%v", got)
	}
}

// The browser shows names as text. Here they must not break the events, or the lines of a terminal that
// shows them.
func TestHostileNamesStayInTheirPlace(t *testing.T) {
	const script, lines, control = "<script>alert(1)</script>", "a\n\nevent: frame\ndata: {}", "\x1b[31m\u202ered\xff"
	got := connect(t, newPage(3, 10, script, lines, control)).start().frame
	var names []string
	for _, r := range got.Rows {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	want := []string{`"\x1b[31m\u202ered\xff"`, `"a\n\nevent: frame\ndata: {}"`, script}
	if !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
}

// A finding of a kind that no tile knows would be shown below, but the verdict would be green.
func TestEachKindHasATile(t *testing.T) {
	script, err := files.ReadFile("page/app.js")
	must.OK(t, err)
	for _, k := range diagnose.Kinds() {
		if !strings.Contains(string(script), fmt.Sprintf("%q", k)) {
			t.Errorf("app.js has no tile for %q", k)
		}
	}
}

// BenchmarkAdd measures a sample of 256 agents with one straggler, with half an hour of history.
func BenchmarkAdd(b *testing.B) {
	p := newPage(256, 1800)
	c := &client{events: make(chan []byte, queued)}
	p.clients[c] = true
	samples := make([]top.Sample, 0, 4096)
	for i := range cap(samples) {
		samples = append(samples, fleet(256, 1802+2*i))
	}
	b.ResetTimer()
	for i := range b.N {
		p.Add(samples[i%len(samples)])
		for len(c.events) > 0 {
			b.SetBytes(int64(len(<-c.events)))
		}
	}
}
