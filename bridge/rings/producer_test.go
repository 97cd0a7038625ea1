// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rings

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/internal/identity"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// The time is the event's time if the ring has timestamps.
func TestAllEventsOfRealRingsReachMetricsAndSinks(t *testing.T) {
	for _, c := range ringtest.Cases(t) {
		if !c.Reported() {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			var got []sink.Event
			w := newWorld(t, Config{Directories: []string{filepath.Dir(ringtest.Copy(t, c))}, Sinks: []sink.Sink{keep(&got)}, Events: true})
			// A ring that has wrapped is read after a second.
			must.EventuallyTrue(t, fmt.Sprintf("%d nixl.events", len(c.Pending)), func() bool {
				var events float64
				for key, v := range w.produce(t) {
					if strings.HasPrefix(key, "nixl.events{") {
						events += v
					}
				}
				return events == float64(len(c.Pending))
			})
			var want []sink.Event
			for _, e := range c.Pending {
				want = append(want, wanted(c, e))
			}
			if d := cmp.Diff(want, got, cmpopts.EquateApproxTime(time.Minute)); d != "" {
				t.Errorf("events (-want +got):\n%s", d)
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

// Sinks receive events before the commit, so that a crash in between loses no event.
func TestProducerDrainsFromOpenToClose(t *testing.T) {
	dir := t.TempDir()
	ring := makeRing(t, dir, ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 5))
	batches := 0
	p, err := Open(Config{
		Directories: []string{dir}, RunInterval: time.Hour, Logger: slog.New(slog.DiscardHandler),
		Sinks: []sink.Sink{sink.Func(func(events []sink.Event) error {
			batches++
			if n, err := ring.Len(); n != 1 || len(events) != 1 || err != nil {
				t.Errorf("%d events, and %d in the ring, %v; want 1", len(events), n, err)
			}
			return nil
		})},
	})
	must.OK(t, errors.Join(err, p.Err()))
	w := world{Producer: p}
	const key = "nixl.memory.registered{nixl.agent.name=a}"
	if got := w.produce(t)[key]; got != 5 {
		t.Errorf("%v registered, want 5", got)
	}
	push(t, ring, ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 2))
	if got := w.produce(t)[key]; got != 7 {
		t.Errorf("%v registered, want 7: a collection drains", got)
	}
	push(t, ring, ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 3))
	must.OK(t, errors.Join(p.Close(), p.Close()))
	if n, err := ring.Len(); batches != 3 || n != 0 || err != nil {
		t.Errorf("%d batches, want 3: Close drains once more; %d events in the ring, %v", batches, n, err)
	}
	if got := w.produce(t)[key]; got != 10 {
		t.Errorf("%v registered after Close, want 10: the last export is complete in any order", got)
	}
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("Err after Close: %v", err)
	}
}

// The service.instance.id is the same as in the Collector.
func TestAgentsWithTheSameNameInTwoDirectoriesAreDistinguished(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "host.name=node-7")
	one, two := t.TempDir(), t.TempDir()
	makeRing(t, one, ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 1))
	makeRing(t, two, ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 2))
	w := newWorld(t, Config{Directories: []string{one, two}})
	got := w.produce(t)
	for i, dir := range []string{one, two} {
		key := "nixl.memory.registered{nixl.agent.name=a,service.instance.id=" + identity.InstanceID("node-7", dir+"/a") + "}"
		if got[key] != float64(i+1) {
			t.Errorf("%s is %v, want %d", key, got[key], i+1)
		}
	}
}

func TestObserveLeavesEventsInTheRing(t *testing.T) {
	dir := t.TempDir()
	ring := makeRing(t, dir, ringbuf.NewEvent(ringbuf.TypeErrBackend, 1))
	t.Setenv("NIXL_TELEMETRY_DIR", dir) // the default directory
	w := newWorld(t, Config{Mode: ringbuf.Observe})
	if n := w.produce(t)["nixl.errors{error.type=backend,nixl.agent.name=a}"]; n != 1 {
		t.Errorf("%v errors, want 1", n)
	}
	if n, err := ring.Len(); n != 1 || err != nil {
		t.Errorf("%d events in the ring, %v", n, err)
	}
}

// A point whose ring was opened during the collection ends a millisecond after its start, because
// backends reject an empty interval.
func TestPointsHaveTheTypeAndTheTimesOfTheirMetric(t *testing.T) {
	dir := t.TempDir()
	makeRing(t, dir,
		ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 5), ringbuf.NewEvent(ringbuf.TypeXferPostTime, 10), ringbuf.NewEvent(ringbuf.TypeXferTime, 1_500_000),
		ringbuf.NewEvent(ringbuf.TypeTxBytes, 4096), ringbuf.NewEvent(ringbuf.TypeTxRequests, 1))
	w := newWorld(t, Config{Directories: []string{dir}, DurationBounds: []float64{1, 2}, clock: func() time.Time { return start }})
	all := w.metrics(t)
	name := attribute.String(semconv.AgentName, "a")
	agent, transmit := attribute.NewSet(name), attribute.NewSet(name, attribute.String(semconv.Direction, semconv.Transmit))
	at := start.Add(time.Millisecond)
	sum := func(monotonic bool, set attribute.Set, v int64) metricdata.Aggregation {
		return metricdata.Sum[int64]{
			DataPoints:  []number{{Attributes: set, StartTime: start, Time: at, Value: v}},
			Temporality: metricdata.CumulativeTemporality, IsMonotonic: monotonic,
		}
	}
	extrema := metricdata.NewExtrema(1.5)
	for _, c := range []struct {
		metric semconv.Metric
		want   metricdata.Aggregation
	}{
		{semconv.TransferIO, sum(true, transmit, 4096)},
		{semconv.MemoryUsage, sum(false, agent, 5)},
		{semconv.TransferLastSize, metricdata.Gauge[int64]{DataPoints: []number{{Attributes: transmit, StartTime: start, Time: at, Value: 4096}}}},
		{semconv.TransferLastDuration, metricdata.Gauge[float64]{DataPoints: []metricdata.DataPoint[float64]{
			{Attributes: agent, StartTime: start, Time: at, Value: 1.5},
		}}},
		{semconv.TransferDuration, metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality, DataPoints: []explicit{{
			Attributes: agent, StartTime: start, Time: at, Count: 1, Sum: 1.5, Min: extrema, Max: extrema,
			Bounds: []float64{1, 2}, BucketCounts: []uint64{0, 1, 0},
		}}}},
	} {
		want := metricdata.Metrics{Name: c.metric.Name, Description: c.metric.Description, Unit: c.metric.Unit, Data: c.want}
		metricdatatest.AssertEqual(t, want, metrictest.Find(t, all, c.metric.Name))
	}
}

func TestMissingDirectoryIsLoggedAndRetried(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	w := newWorld(t, Config{Directories: []string{dir}})
	w.log.wait(t, "level=WARN", "telemetry directory can't be read", "path="+dir, "error=", "no such file or directory")
	if err := w.Err(); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("Err: %v", err)
	}
	must.OK(t, os.Mkdir(dir, 0o700))
	makeRing(t, dir)
	w.log.wait(t, "telemetry directory can be read now", "ring opened (layout v4, 64 slots)")
}

func TestFailingSinkIsReportedOnceAndAffectsNothingElse(t *testing.T) {
	errs := metrictest.Handled(t)
	dir := t.TempDir()
	ring := makeRing(t, dir)
	var got []sink.Event
	w := newWorld(t, Config{Directories: []string{dir}, Sinks: []sink.Sink{
		sink.Func(func([]sink.Event) error { return errors.New("disk is full") }), keep(&got),
	}})
	for range 3 {
		push(t, ring, ringbuf.NewEvent(ringbuf.TypeErrBackend, 1))
		w.produce(t)
	}
	must.OK(t, w.Close())
	must.EventuallyTrue(t, "reported error", func() bool { return len(errs()) > 0 })
	if len(errs()) != 1 || !strings.Contains(errs()[0], "disk is full") {
		t.Errorf("reported %q, want one error", errs())
	}
	if len(got) != 3 || w.produce(t)["nixl.errors{error.type=backend,nixl.agent.name=a}"] != 3 {
		t.Errorf("the other sink has %d events, the metrics %v", len(got), w.produce(t))
	}
}

func TestInvalidConfigurationIsRejected(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  Config
		env  string
		want string
	}{
		"include":      {Config{Include: []string{"["}}, "", `include: "[" is not a valid pattern`},
		"in env":       {Config{}, "x", "NIXL_TELEMETRY_RUN_INTERVAL=x"},
		"run interval": {Config{RunInterval: -time.Second}, "", "run interval: -1s is too short"},
		"mode":         {Config{Mode: 9}, "", "mode is 9"},
		"nil sink":     {Config{Sinks: []sink.Sink{keep(nil), nil}}, "", "a sink is nil"},
		"directories":  {Config{Directories: []string{"/a", "/a"}}, "", "/a is listed twice"},
		"relative":     {Config{Directories: []string{"a"}}, "", `directory "a": it must be an absolute path`},
		"bounds":       {Config{DurationBounds: []float64{2, 1}}, "", "duration: bounds must be"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NIXL_TELEMETRY_RUN_INTERVAL", c.env)
			_, err := Open(c.cfg)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "read NIXL's rings: ") {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// The last totals of an agent that has exited are exported, and then it is forgotten.
func TestExitedAgentIsForgottenAfterACollection(t *testing.T) {
	dir := t.TempDir()
	ring := makeRing(t, dir, ringbuf.NewEvent(ringbuf.TypeErrBackend, 1))
	w := newWorld(t, Config{Directories: []string{dir}})
	must.OK(t, ring.Close())
	if n := w.produce(t)["nixl.errors{error.type=backend,nixl.agent.name=a}"]; n != 1 {
		t.Errorf("%v errors, want 1", n)
	}
	must.EventuallyTrue(t, "an export without the agent", func() bool {
		w.ahead.Add(int64(time.Minute))
		return len(w.produce(t)) == 0
	})
}

// A sink that hangs delays collections, but not a health check.
func TestErrDoesNotWaitForACollection(t *testing.T) {
	w := newWorld(t, Config{Directories: []string{t.TempDir()}})
	w.mu.Lock() // as during a collection
	defer w.mu.Unlock()
	must.OK(t, w.Err())
}

// An error handler may close what failed.
func TestErrorHandlerMayCloseTheProducer(t *testing.T) {
	dir, broken := t.TempDir(), sink.Func(func([]sink.Event) error { return errors.New("disk is full") })
	ring := makeRing(t, dir)
	for name, c := range map[string]struct {
		fail func(*world)
		want string // error of Close
	}{
		"collection": {func(w *world) {
			must.OK(t, w.host.Stop(t.Context()))
			_, err := w.Produce(t.Context())
			must.OK(t, err)
		}, "read NIXL's rings: draining has stopped"},
		"sink": {func(*world) { push(t, ring, ringbuf.NewEvent(ringbuf.TypeErrBackend, 1)) }, "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{Directories: []string{dir}, Sinks: []sink.Sink{broken}})
			closed := make(chan error, 1)
			metrictest.Handle(t, func(error) { closed <- w.Close() })
			c.fail(w)
			if err := <-closed; fmt.Sprint(err) != c.want {
				t.Errorf("Close: %v, want %s", err, c.want)
			}
		})
	}
}

// The clock of a machine can be ahead until it is set for the first time.
func TestPointsFollowAClockThatIsSetBack(t *testing.T) {
	dir := t.TempDir()
	ring := makeRing(t, dir)
	w := newWorld(t, Config{Directories: []string{dir}})
	collect := func(ahead time.Duration) []number {
		push(t, ring, ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 1))
		w.ahead.Store(int64(ahead))
		sum, _ := metrictest.Find(t, w.metrics(t), semconv.MemoryRegistered.Name).Data.(metricdata.Sum[int64])
		return sum.DataPoints
	}
	first, last := collect(time.Hour)[0], collect(0)[0]
	if last.Value != 2 || !last.Time.After(first.Time) {
		t.Errorf("the last totals with the old time are %+v, after %+v", last, first)
	}
	if now := collect(0); len(now) != 1 || now[0].Value != 1 || now[0].Time.After(start.Add(time.Hour)) {
		t.Errorf("the first totals with the new time are %+v", now)
	}
}

// A program whose rings can't be read may log the error and go on.
func TestNilProducerReadsNothing(t *testing.T) {
	var p *Producer
	reader := p.Reader(deltaExporter{})
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	if got := metrictest.Collect(t, reader); len(got) > 0 {
		t.Errorf("collected %v", got)
	}
	must.OK(t, errors.Join(provider.Shutdown(t.Context()), p.Err(), p.Close()))
}
