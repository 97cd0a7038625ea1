// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rings_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/rings"
	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/internal/identity"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestAllEventsOfRealRingsReachMetricsAndSinks(t *testing.T) {
	for _, c := range ringtest.Cases(t) {
		if !c.Readable() {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			var k kept
			dir := filepath.Dir(ringtest.Copy(t, c))
			w := newWorld(t, rings.WithDirectories(dir), rings.WithSinks(&k))
			w.log.wait(t, "ring opened") // a ring that has just wrapped is only opened once its file is 1 s old
			var events float64
			for key, v := range w.produce(t) {
				if strings.HasPrefix(key, "nixl.events{") {
					events += v
				}
			}
			if events != float64(len(c.Pending)) {
				t.Errorf("nixl.events add up to %v, want %d", events, len(c.Pending))
			}
			got := k.all()
			if len(got) != len(c.Pending) {
				t.Fatalf("%d events, want %d", len(got), len(c.Pending))
			}
			for i, e := range c.Pending {
				if d := cmp.Diff(wanted(c, e), got[i], cmpopts.EquateApproxTime(time.Minute)); d != "" {
					t.Fatalf("event %d (-want +got):\n%s", i, d)
				}
			}
		})
	}
}

// wanted returns the event of a fixture as a sink receives it.
func wanted(c ringtest.Case, e ringtest.Event) sink.Event {
	out := sink.Event{Agent: filepath.Base(c.Name), Time: start, Category: -1, Name: e.Name, Value: e.Value}
	if e.TimestampMicros > 0 {
		out.Time = time.UnixMicro(int64(e.TimestampMicros))
	}
	switch {
	case e.Category != nil:
		out.Category = ringbuf.Category(*e.Category)
	case *e.Type < 20:
		out.Category = ringbuf.Type(*e.Type).Category()
	case *e.Type == 20 && c.Version == 4:
		out.Category = ringbuf.CategorySystem
	}
	if e.Type != nil && e.Name == "unknown_event" {
		out.Name = fmt.Sprintf("unknown_event_%d", *e.Type)
	}
	out.Name = strings.ToValidUTF8(out.Name, "\uFFFD")
	return out
}

func TestProducerDrainsFromStartToClose(t *testing.T) {
	dir := t.TempDir()
	ring := makeRing(t, dir, ringbuf.V4, ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 5))
	var k kept
	p, err := rings.New(rings.WithDirectories(dir), rings.WithSinks(&k), rings.WithRunInterval(time.Hour),
		rings.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	w := world{Producer: p}
	if got := w.metrics(t); got != nil {
		t.Errorf("before Start: %v", got)
	}
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "isn't started") {
		t.Errorf("Err before Start: %v", err)
	}
	for range 2 {
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Err(); err != nil {
		t.Errorf("Err: %v", err)
	}
	const key = "nixl.memory.registered{nixl.agent.name=a}"
	if got := w.produce(t)[key]; got != 5 {
		t.Errorf("%v registered, want 5", got)
	}
	if err := ring.Push(ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 2)); err != nil {
		t.Fatal(err)
	}
	if got := w.produce(t)[key]; got != 7 {
		t.Errorf("%v registered, want 7: a collection drains", got)
	}
	if err := ring.Push(ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 3)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := len(k.all()); n != 3 {
		t.Errorf("the sink has %d events, want 3: Close drains once more", n)
	}
	if got := w.produce(t)[key]; got != 10 {
		t.Errorf("%v registered after Close, want 10: the last export is complete in any order", got)
	}
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("Err after Close: %v", err)
	}
	if err := p.Start(); err != nil {
		t.Error(err)
	}
	if n, err := ring.Len(); n != 0 || err != nil {
		t.Errorf("%d events in the ring, %v", n, err)
	}
}

// The service.instance.id is the same as in the Collector.
func TestAgentsWithTheSameNameInTwoDirectoriesAreDistinguished(t *testing.T) {
	for name, c := range map[string]struct {
		environment string
		opts        []rings.Option
		host        string
	}{
		"host name from option":      {"host.name=other", []rings.Option{rings.WithHostName("host")}, "host"},
		"host name from environment": {"host.name=node-7", nil, "node-7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_RESOURCE_ATTRIBUTES", c.environment)
			one, two := t.TempDir(), t.TempDir()
			makeRing(t, one, ringbuf.V4, ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 1))
			makeRing(t, two, ringbuf.V4, ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 2))
			w := newWorld(t, append(c.opts, rings.WithDirectories(one, two))...)
			for range 2 { // the second time, the attribute sets are cached
				got := w.produce(t)
				for i, dir := range []string{one, two} {
					key := "nixl.memory.registered{nixl.agent.name=a,service.instance.id=" + identity.InstanceID(c.host, dir+"/a") + "}"
					if got[key] != float64(i+1) {
						t.Errorf("%s is %v, want %d", key, got[key], i+1)
					}
				}
			}
		})
	}
}

func TestObserveLeavesEventsInTheRing(t *testing.T) {
	dir := t.TempDir()
	ring := makeRing(t, dir, ringbuf.V4, ringbuf.NewEvent(ringbuf.TypeErrBackend, 1))
	w := newWorld(t, rings.WithDirectories(dir), rings.WithMode(ringbuf.Observe))
	if n := w.produce(t)["nixl.errors{error.type=backend,nixl.agent.name=a}"]; n != 1 {
		t.Errorf("%v errors, want 1", n)
	}
	if n, err := ring.Len(); n != 1 || err != nil {
		t.Errorf("%d events in the ring, %v", n, err)
	}
}

func TestHistogramOptionsApply(t *testing.T) {
	for name, c := range map[string]struct {
		opt   rings.Option
		check func(metricdata.Aggregation) bool
	}{
		"bounds": {rings.WithHistogramBounds([]float64{1, 2}, []float64{10}, nil), func(a metricdata.Aggregation) bool {
			h, ok := a.(metricdata.Histogram[float64])
			return ok && cmp.Equal(h.DataPoints[0].Bounds, []float64{1, 2}) &&
				cmp.Equal(h.DataPoints[0].BucketCounts, []uint64{0, 1, 0})
		}},
		"exponential": {rings.WithExponentialHistograms(20), func(a metricdata.Aggregation) bool {
			h, ok := a.(metricdata.ExponentialHistogram[float64])
			return ok && cmp.Equal(h.DataPoints[0].PositiveBucket.Counts, []uint64{1}) && h.DataPoints[0].Scale == 20
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			makeRing(t, dir, ringbuf.V3, ringbuf.NewEvent(ringbuf.TypeXferTime, 1_500_000))
			for _, m := range newWorld(t, rings.WithDirectories(dir), c.opt).metrics(t) {
				if m.Name == "nixl.transfer.duration" && !c.check(m.Data) {
					t.Errorf("%+v", m.Data)
				}
			}
		})
	}
}

func TestMissingDirectoryIsLoggedAndRetried(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	w := newWorld(t, rings.WithDirectories(dir))
	w.log.wait(t, "level=WARN", "telemetry directory can't be read", "path="+dir)
	if err := w.Err(); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("Err: %v", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	makeRing(t, dir, ringbuf.V4)
	w.log.wait(t, "telemetry directory can be read now", "ring opened (layout v4, 64 slots)")
}

// A crash between sinks and commit loses no event.
func TestSinksReceiveEventsBeforeTheCommit(t *testing.T) {
	dir := t.TempDir()
	ring := makeRing(t, dir, ringbuf.V4, ringbuf.NewEvent(ringbuf.TypeErrBackend, 1))
	calls := 0
	w := newWorld(t, rings.WithDirectories(dir), rings.WithSinks(sink.Func(func([]sink.Event) error {
		calls++
		if n, err := ring.Len(); n != 1 || err != nil {
			t.Errorf("%d events in the ring, %v; want 1", n, err)
		}
		return nil
	})))
	w.produce(t)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := ring.Len(); calls != 1 || n != 0 || err != nil {
		t.Errorf("%d batches, %d events in the ring, %v", calls, n, err)
	}
}

func TestFailingSinkIsLoggedOnceAndAffectsNothingElse(t *testing.T) {
	dir := t.TempDir()
	ring := makeRing(t, dir, ringbuf.V4)
	var k kept
	w := newWorld(t, rings.WithDirectories(dir), rings.WithSinks(
		sink.Func(func([]sink.Event) error { return errors.New("disk is full") }), &k))
	for range 3 {
		if err := ring.Push(ringbuf.NewEvent(ringbuf.TypeErrBackend, 1)); err != nil {
			t.Fatal(err)
		}
		w.produce(t)
	}
	if n := strings.Count(w.log.String(), "disk is full"); n != 1 {
		t.Errorf("logged %d times, want 1:\n%s", n, w.log)
	}
	if len(k.all()) != 3 || w.produce(t)["nixl.errors{error.type=backend,nixl.agent.name=a}"] != 3 {
		t.Errorf("the other sink has %d events, the metrics %v", len(k.all()), w.produce(t))
	}
}

func TestInvalidOptionsAreRejected(t *testing.T) {
	for name, c := range map[string]struct {
		opt  rings.Option
		env  string
		want string
	}{
		"include":      {rings.WithInclude("["), "", `include: "[" is not a valid pattern`},
		"exclude":      {rings.WithExclude("["), "", `exclude: "[" is not a valid pattern`},
		"run interval": {rings.WithRunInterval(0), "", "run interval is"},
		"in env":       {rings.WithInclude("*"), "x", "NIXL_TELEMETRY_RUN_INTERVAL=x"},
		"negative":     {rings.WithRunInterval(-time.Second), "", "run interval is -1s"},
		"mode":         {rings.WithMode(9), "", "mode is 9"},
		"max rings":    {rings.WithMaxRings(-1), "", "max rings is -1"},
		"no rings":     {rings.WithMaxRings(0), "", "max rings is 0"},
		"max names":    {rings.WithMaxEventNames(-1), "", "max event names is -1"},
		"no names":     {rings.WithMaxEventNames(0), "", "max event names is 0"},
		"stale after":  {rings.WithStaleAfter(-1), "", "stale after is -1ns"},
		"stale at 0":   {rings.WithStaleAfter(0), "", "stale after is 0s"},
		"nil sink":     {rings.WithSinks(&kept{}, nil), "", "a sink is nil"},
		"directories":  {rings.WithDirectories("a", "a"), "", "a is listed twice"},
		"bounds":       {rings.WithHistogramBounds([]float64{2, 1}, nil, nil), "", "duration: bounds must be"},
		"buckets":      {rings.WithExponentialHistograms(1), "", "is 1"},
		"few buckets":  {rings.WithExponentialHistograms(-1), "", "is -1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NIXL_TELEMETRY_RUN_INTERVAL", c.env)
			_, err := rings.New(c.opt)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "read NIXL's rings: ") {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// Without a reader, the metrics of drained events are lost.
func TestProducerWithoutAReaderIsLogged(t *testing.T) {
	for name, c := range map[string]struct {
		collected bool
		opts      []rings.Option
		logged    bool
	}{
		"no reader": {false, nil, true},
		"a reader":  {true, nil, false},
		"sinks":     {false, []rings.Option{rings.WithSinks(&kept{})}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var later atomic.Int64
			clock := newClock()
			opts := append(c.opts, rings.WithDirectories(t.TempDir()),
				rings.WithClock(func() time.Time { return clock().Add(time.Duration(later.Load())) }))
			w := newWorld(t, opts...)
			if c.collected {
				w.metrics(t)
			}
			later.Store(int64(time.Minute))
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if logged := strings.Contains(w.log.String(), "no reader has collected the metrics of NIXL agents"); logged != c.logged {
				t.Errorf("logged=%v, want %v:\n%s", logged, c.logged, w.log)
			}
		})
	}
}
