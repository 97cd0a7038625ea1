// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package top

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/internal/live"
	"github.com/nixl-otel/nixl-otel/internal/live/livetest"
	"github.com/nixl-otel/nixl-otel/internal/must"
)

// frameOf returns a frame with the state of agents after n seconds.
func frameOf(n int, agents ...string) string {
	return fmt.Sprintf(`{"version":1,"time":%q,"host":"gpu-7","collector":{"pid":42,"program":"otelcol-nixl","consumes":true},
		"bounds":[[0.001,0.01,0.1]],"agents":[%s]}`, begin.Add(time.Duration(n)*time.Second).Format(time.RFC3339Nano), strings.Join(agents, ","))
}

func liveAgent(name, attributes string, start, transfers int, counts string) string {
	return fmt.Sprintf(`{"id":%q,"name":%[1]q,"path":"/rings/%[1]s","attributes":{%[2]s},"layout":"v4","start":"2023-01-01T00:00:%02[3]dZ","up":true,
		"ring":{"capacity":64,"peak":%[4]d,"foreign_reads":1},
		"totals":{"transmit_bytes":%[4]d000,"transfers":%[4]d,"transfer_time_us":%[4]d00,"events":%[4]d,"errors":{"backend":2},"memory_bytes":5,
		"durations":{"counts":[%[5]s]}},
		"transfers":[{"time":"2023-01-01T00:00:00Z","transfer_time_us":%[4]d,"bytes":7}]}`, name, attributes, start, transfers, counts)
}

func newLive(t *testing.T, path string, include ...string) *Live {
	t.Helper()
	s := NewLive(LiveConfig{Socket: path, Include: include})
	t.Cleanup(func() { _ = s.Close() })
	must.OK(t, s.Start())
	return s
}

func TestLiveShowsWhatTheReceiverCounts(t *testing.T) {
	frames := []string{
		frameOf(0),
		frameOf(0, liveAgent("a", `"service.name":"decode","k8s.pod.uid":"0123456789","k8s.container.name":"vllm"`, 1, 10, "10,0,0,0")),
		frameOf(2, liveAgent("a", `"service.name":"decode","k8s.pod.uid":"0123456789","k8s.container.name":"vllm"`, 1, 30, "10,20,0,0")),
		frameOf(4, liveAgent("a", ``, 2, 3, "1,1,1,0")),
	}
	s := newLive(t, livetest.Serve(t, func(live.Request) string {
		f := frames[0]
		frames = frames[1:]
		return f
	}))
	if s.Name() != "gpu-7" {
		t.Errorf("the name is %q", s.Name())
	}
	board := NewBoard(time.Minute, 10)
	board.Add(s.Sample())
	board.Add(s.Sample())
	must.OK(t, board.Err())
	r := board.Row("/rings/a")
	if r == nil {
		t.Fatal("no agent")
	}
	if r.Name != "01234567/vllm/a" || r.Service != "decode" || r.Alive != procs.Yes || r.ReaderName() != "otelcol-nixl" || r.MemoryUnknown || r.Memory != 5 {
		t.Errorf("%+v", r.Reading)
	}
	if r.Out != 10_000 || r.Transfers != 10 || r.Window.Took != 2000 || r.Window.Foreign != 0 || len(r.Failures) != 1 || r.Failures[0] != (Failure{"backend", 2}) {
		t.Errorf("%+v", r)
	}
	if math.Abs(r.P50-5.5e-3) > 3e-4 { // the middle of the bucket from 1 to 10 ms
		t.Errorf("the median is %v", r.P50)
	}
	if slow := s.Slowest("/rings/a"); len(slow) != 2 || slow[0].Took != 30*time.Microsecond || slow[0].Bytes != 7 {
		t.Errorf("%+v", slow)
	}
	board.Add(s.Sample()) // the totals begin again
	if r := board.Row("/rings/a"); r.Transfers != 0 || r.Since.Transfers != 0 {
		t.Errorf("%v transfers per second after new totals", r.Transfers)
	}
}

func TestLiveConnectsAgain(t *testing.T) {
	n := 0
	s := newLive(t, livetest.Serve(t, func(live.Request) string {
		if n++; n == 2 {
			return ""
		}
		return frameOf(n)
	}))
	if err := s.Sample().Err; err == nil || err.Error() != "the receiver has closed the connection" {
		t.Errorf("error is %v", err)
	}
	must.OK(t, s.Sample().Err)
}

func TestLiveIncludesAgentsByName(t *testing.T) {
	path := livetest.Serve(t, func(live.Request) string {
		return frameOf(1, liveAgent("prefill-1", "", 1, 1, "1,0,0,0"), liveAgent("decode-1", "", 1, 1, "1,0,0,0"))
	})
	for pattern, want := range map[string][2]int{"prefill-*": {1, 0}, "none": {0, 2}} {
		if got := newLive(t, path, pattern).Sample(); len(got.Agents) != want[0] || got.Excluded != want[1] {
			t.Errorf("%s: %d agents, %d excluded", pattern, len(got.Agents), got.Excluded)
		}
	}
}

func TestLiveErrorsSayWhatToDo(t *testing.T) {
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead")
	must.OK(t, os.WriteFile(dead, nil, 0o600))
	for path, want := range map[string]string{
		filepath.Join(dir, "missing"): "no such socket; set the key socket of the receiver nixl_shm, or read the rings of a directory instead",
		dead:                          "nobody serves this socket; is the Collector running?",
		livetest.Serve(t, func(live.Request) string { return `{"version":2}` }): "the Collector serves version 2, but this program reads version 1; use programs of the same release",
	} {
		s := NewLive(LiveConfig{Socket: path})
		if err := s.Start(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one with %q", err, want)
		}
	}
}

// Quantiles stay in the bucket of the receiver, whichever bounds it has.
func TestCountsKeepTheirBuckets(t *testing.T) {
	from := []float64{0, 1e-5, 3.3e-4, 0.01, 0.25, 20}
	for i := range len(from) + 1 {
		counts := make([]uint64, len(from)+1)
		counts[i] = 1000
		got := spread(bounds, from, counts)
		var sum uint64
		for _, n := range got {
			sum += n
		}
		lower, upper := 0.0, math.Inf(1)
		if i > 0 {
			lower = from[i-1]
		}
		if i < len(from) {
			upper = from[i]
		}
		for _, q := range []float64{0.01, 0.5, 0.99} {
			// The quantile is exact up to a bucket of this package.
			if v := Quantile(got, q); v < lower*0.7 || v > max(upper*1.6, bounds[0]) || sum != 1000 {
				t.Errorf("bucket %d from %v to %v: quantile %v is %v, %d values", i, lower, upper, q, v, sum)
			}
		}
	}
	if d := cmp.Diff([]uint64{0, 7, 0}, onto([]float64{2, 8}, []float64{4, 8, 16}, []uint64{3, 4, 0, 0})); d != "" {
		t.Error(d)
	}
}

func TestIncreaseIsExactWhenBucketsUnite(t *testing.T) {
	standard := []float64{1, 2, 4, 8, 16}
	before, own := []uint64{1, 2, 3, 0}, []float64{0, 2, 4}
	now, ownNow := []uint64{1, 7, 4, 0}, []float64{0, 4, 16}
	got := increase(standard, now, ownNow, before, own)
	if d := cmp.Diff([]uint64{0, 1, 1, 1, 3, 0}, got); d != "" {
		t.Error(d)
	}
}

func TestAgentsHaveTheNamesOfTheirPods(t *testing.T) {
	proc, uid := t.TempDir(), "01234567-89ab-cdef-0123-456789abcdef"
	logs := filepath.Join(proc, "1", "root", "var", "log", "pods")
	must.OK(t, os.MkdirAll(filepath.Join(logs, "prod_decode-0_"+uid), 0o755))
	must.OK(t, os.Mkdir(filepath.Join(logs, "other"), 0o755))
	p := pods{proc: proc}
	name := func(uid string, now time.Time) string {
		a := &live.Agent{Name: "agent", Attributes: map[string]string{"k8s.pod.uid": uid}}
		p.name(a, now)
		r := read(a)
		return r.Name + ": " + strings.Join(r.Identity(), ", ")
	}
	const later = "abcdefab-89ab-cdef-0123-456789abcdef"
	for _, tt := range []struct {
		uid, want string
		after     time.Duration
	}{
		{uid, "decode-0/agent: namespace prod, pod decode-0, pod " + uid, 0},
		{later, "abcdefab/agent: pod " + later, podsInterval - 1},
		{later, "prefill-1/agent: namespace prod, pod prefill-1, pod " + later, podsInterval},
		{uid, "decode-0/agent: namespace prod, pod decode-0, pod " + uid, podsInterval},
	} {
		if got := name(tt.uid, begin.Add(tt.after)); got != tt.want {
			t.Errorf("after %v: %s, want %s", tt.after, got, tt.want)
		}
		must.OK(t, os.MkdirAll(filepath.Join(logs, "prod_prefill-1_"+later), 0o755))
	}
}
