// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// withLogs adds a logs pipeline.
func (h *harness) withLogs() *harness {
	h.records = make(chan plog.Logs, 1<<14)
	return h
}

// onlyLogs makes it the only pipeline.
func (h *harness) onlyLogs() *harness {
	h.batches = nil
	return h.withLogs()
}

// logged is a log record and its resource.
type logged struct {
	Resource       map[string]any
	Event          string
	Severity       plog.SeverityNumber
	SeverityText   string
	Body           string
	Attributes     map[string]any
	Time, Observed time.Time
}

func (h *harness) addLogged(to []logged, logs plog.Logs) []logged {
	h.tb.Helper()
	for _, rl := range logs.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			if sl.Scope().Name() != semconv.ScopeName || sl.Scope().Version() != semconv.Version {
				h.tb.Errorf("scope is %s %s", sl.Scope().Name(), sl.Scope().Version())
			}
			if rl.SchemaUrl() != semconv.SchemaURL || sl.SchemaUrl() != semconv.SchemaURL {
				h.tb.Errorf("schema URL is %q of the resource and %q of the scope", rl.SchemaUrl(), sl.SchemaUrl())
			}
			for _, r := range sl.LogRecords().All() {
				to = append(to, logged{
					rl.Resource().Attributes().AsRaw(), r.EventName(), r.SeverityNumber(), r.SeverityText(), r.Body().Str(),
					r.Attributes().AsRaw(), r.Timestamp().AsTime(), r.ObservedTimestamp().AsTime(),
				})
			}
		}
	}
	return to
}

// awaitLogged waits for a number of log records.
func (h *harness) awaitLogged(n int) (list []logged) {
	h.tb.Helper()
	for len(list) < n {
		list = h.addLogged(list, wait(h.tb, h.records, "log records"))
	}
	if len(list) > n {
		h.tb.Fatalf("%d log records, want %d", len(list), n)
	}
	return list
}

// restLogged returns the remaining log records after a shutdown.
func (h *harness) restLogged() (list []logged) {
	h.tb.Helper()
	for len(h.records) > 0 {
		list = h.addLogged(list, <-h.records)
	}
	return list
}

// collect collects, but doesn't wait for metrics.
func (h *harness) collect() {
	h.tb.Helper()
	must.OK(h.tb, h.own().collect(h.tb.Context(), false))
}

func TestSlowTransferIsLogged(t *testing.T) {
	recorded := time.UnixMicro(1_700_000_000_123_456).UTC()
	for _, layout := range ringbuf.Layouts() {
		t.Run(layout.String(), func(t *testing.T) {
			dir := t.TempDir()
			w := ring(t, dir, "agent", layout, 64)
			h := newHarness(t, dir, func(c *Config) {
				c.ResourceAttributes.NixlTelemetryLayout.Enabled = true
				c.Resource = map[string]string{"k8s.cluster.name": "east"}
			}).withLogs()
			clock := newClock()
			h.on.now = clock.now
			h.start()
			events := write(64<<20, 2_100_000, 70)
			events[2].Type, events[3].Type = ringbuf.TypeRxBytes, ringbuf.TypeRxRequests
			for i := range events {
				events[i].Name, events[i].TimestampMicros = ringbuf.MakeName(events[i].Type.LegacyName()), uint64(recorded.UnixMicro())
				events[i].Named = layout.Named()
			}
			push(t, w, events...)
			h.collect()
			want := logged{
				Event: "nixl.transfer.slow", Severity: plog.SeverityNumberWarn, SeverityText: "WARN",
				Body: "Receiving 67108864 bytes took 2.1s, longer than slow_transfer (1s).",
				Attributes: map[string]any{
					"nixl.transfer.direction": "receive", "nixl.transfer.size": int64(64 << 20), "nixl.transfer.duration": 2.1,
					"nixl.transfer.post.duration": 70e-6, "nixl.transfer.throughput": int64(31956601),
				},
				Time: recorded, Observed: clock.now().UTC(),
			}
			if layout != ringbuf.V1 {
				want.Time = time.Unix(0, 0).UTC() // unset
			}
			metrics := wait(t, h.batches, "metrics")
			want.Resource = metrics.ResourceMetrics().At(0).Resource().Attributes().AsRaw()
			if len(want.Resource) != 6 || want.Resource["k8s.cluster.name"] != "east" {
				t.Errorf("the metrics have the resource %v", want.Resource)
			}
			if d := cmp.Diff([]logged{want}, h.awaitLogged(1)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestErrorIsLogged(t *testing.T) {
	dir := t.TempDir()
	w := ring(t, dir, "agent", ringbuf.V1, 64)
	push(t, w,
		ringbuf.NewNamedEvent(ringbuf.CategoryError, "NIXL_ERR_REMOTE_DISCONNECT", 1),
		ringbuf.NewNamedEvent(ringbuf.CategoryError, "SOMETHING_ELSE", 1),
		ringbuf.NewNamedEvent(ringbuf.CategoryBackend, "progress", 1))
	var got []logged
	for _, r := range newHarness(t, dir).withLogs().start().awaitLogged(2) {
		got = append(got, logged{Event: r.Event, Severity: r.Severity, SeverityText: r.SeverityText, Body: r.Body, Attributes: r.Attributes})
	}
	var want []logged
	for _, status := range []string{"remote_disconnect", "_OTHER"} {
		want = append(want, logged{
			Event: "nixl.error", Severity: plog.SeverityNumberError, SeverityText: "ERROR",
			Body: "An operation ended with the error " + status + ".", Attributes: map[string]any{"error.type": status},
		})
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestErrorsAreNotLoggedIfDisabled(t *testing.T) {
	h := agentHarness(t, func(c *Config) { c.Logs.Errors = false }).withLogs()
	h.push(ringbuf.NewEvent(ringbuf.TypeErrBackend, 1))
	h.start()
	if got := one(t, h.shutdown()).int("nixl.errors{error.type=backend}"); got != 1 {
		t.Errorf("%d errors in the metrics, want 1", got)
	}
	if got := h.restLogged(); len(got) > 0 {
		t.Errorf("logged %+v", got)
	}
}

func TestEachConditionMakesATransferSlow(t *testing.T) {
	dir := t.TempDir()
	w := ring(t, dir, "agent", ringbuf.V4, 8192)
	h := newHarness(t, dir, func(c *Config) {
		c.Logs.SlowTransfer, c.Logs.MinThroughput = 50*time.Millisecond, 1.25e9
	}).withLogs().start()
	push(t, w, write(1<<20-1, 10_000, 1)...) // too small for a throughput
	push(t, w, write(999, 50_001, 1)...)
	push(t, w, write(1_250_000, 1001, 1)...)
	push(t, w, write(1_250_000, 1000, 1)...)
	want := []string{
		"Transmitting 999 bytes took 50.001ms, longer than slow_transfer (50ms).",
		"Transmitting 1250000 bytes took 1.001ms, at 1.25 GB/s less than min_throughput (1.25 GB/s).",
	}
	var got []string
	for _, r := range h.awaitLogged(len(want)) {
		got = append(got, r.Body)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestNumbersAreLimitedToTheRangeOfOTLP(t *testing.T) {
	h := agentHarness(t).onlyLogs()
	h.push(write(math.MaxUint64, math.MaxUint64, math.MaxUint64)...)
	got := h.start().awaitLogged(1)[0]
	if got.Attributes["nixl.transfer.size"] != int64(math.MaxInt64) || got.Attributes["nixl.transfer.duration"] != float64(math.MaxUint64)/1e6 {
		t.Errorf("%+v", got)
	}
}

// The result must not depend on the order in which the Collector starts and shuts down
// its components.
func TestBothPipelinesReportEveryTransferOnce(t *testing.T) {
	for name, c := range map[string]struct{ startLast, stopLast bool }{
		"metrics first":           {false, true},
		"logs first":              {true, false},
		"metrics start and stop":  {false, false},
		"logs start and stop too": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			h := newHarness(t, dir, func(c *Config) { c.Logs.Rate = 1e6 }).withLogs()
			var ws []*ringbuf.Writer
			for i := range 3 {
				ws = append(ws, ring(t, dir, fmt.Sprint("agent-", i), ringbuf.V4, 4096))
			}
			h.create()
			list := h.components()
			if h.own() != list[1].(*pipeline).ringReceiver { //nolint:forcetypeassert,errcheck // the factory made it
				t.Fatal("the pipelines have two receivers")
			}
			if c.startLast {
				slices.Reverse(list)
			}
			for _, one := range list {
				must.OK(t, one.Start(t.Context(), h))
			}
			h.opened(3)
			for range 500 {
				for _, w := range ws {
					push(t, w, slow...)
				}
			}
			if c.startLast != c.stopLast {
				slices.Reverse(list)
			}
			h.stop = func() error {
				var errs []error
				for _, one := range slices.Concat(list, list) { // a repeated shutdown has no effect
					errs = append(errs, one.Shutdown(t.Context()))
				}
				return errors.Join(errs...)
			}
			for name, a := range read(t, h.shutdown()) {
				if got := a.int("nixl.transfer.requests{nixl.transfer.direction=transmit}"); got != 500 {
					t.Errorf("%s: %d transfers counted, want 500", name, got)
				}
			}
			perAgent := make(map[any]int)
			for _, r := range h.restLogged() {
				perAgent[r.Resource["nixl.agent.name"]]++
			}
			if d := cmp.Diff(map[any]int{"agent-0": 500, "agent-1": 500, "agent-2": 500}, perAgent); d != "" {
				t.Errorf("log records (-want +got)\n%s", d)
			}
		})
	}
}

// A Collector that reloads its configuration shuts the old receiver down first.
func TestPipelinesCreatedAfterAShutdownHaveANewReceiver(t *testing.T) {
	h := newHarness(t, t.TempDir()).withLogs()
	f := newFactory(h.on)
	var before *ringReceiver
	for range 2 {
		m, err := f.CreateMetrics(t.Context(), h.settings, h.cfg, nil)
		must.OK(t, err)
		r := m.(*pipeline).ringReceiver //nolint:forcetypeassert,errcheck // the factory made it
		if r == before {
			t.Error("the receiver that was shut down was reused")
		}
		before = r
		must.OK(t, m.Shutdown(t.Context()))
	}
}

func TestPipelineReceivesNothingBeforeItsStart(t *testing.T) {
	h := agentHarness(t).withLogs()
	h.push(slow...)
	h.create()
	must.OK(t, h.receiver.Start(t.Context(), h))
	h.opened(1)
	h.next()
	if len(h.records) > 0 {
		t.Error("log records came before the start")
	}
	must.OK(t, h.logs.Start(t.Context(), h))
	h.awaitLogged(1)
	if err := errors.Join(h.receiver.Shutdown(t.Context()), h.logs.Shutdown(t.Context())); err != nil {
		t.Error(err)
	}
}

// Another component may have failed to start.
func TestShutdownDoesntWaitForAPipelineThatHasNotStarted(t *testing.T) {
	h := agentHarness(t).withLogs()
	h.create()
	must.OK(t, h.receiver.Start(t.Context(), h))
	h.push(slow...)
	must.OK(t, errors.Join(h.receiver.Shutdown(t.Context()), h.logs.Shutdown(t.Context())))
	if got := one(t, <-h.batches).int(transmitted); got != 1 || len(h.records) > 0 {
		t.Errorf("%d bytes transmitted, want 1; %d log records, want none", got, len(h.records))
	}
}

func TestLogsPipelineWorksWithoutMetricsPipeline(t *testing.T) {
	h := agentHarness(t, often).onlyLogs().start()
	h.push(slow...)
	h.awaitLogged(1)
	h.push(write(2, 2_000_000, 1)...)
	must.OK(t, h.stop())
	if got := h.restLogged(); len(got) != 1 {
		t.Errorf("%d records at shutdown, want 1", len(got))
	}
}

func TestStatusIsReportedInEveryPipeline(t *testing.T) {
	t.Parallel() // it waits for the next check of the directory
	h := newHarness(t, t.TempDir()+"/missing", often).withLogs().startWith(0)
	for range 2 {
		h.mustSay(componentstatus.StatusRecoverableError, "telemetry directory can't be read")
	}
}

func TestLogRecordsAreLimitedPerAgent(t *testing.T) {
	dir := t.TempDir()
	ws := []*ringbuf.Writer{ring(t, dir, "busy", ringbuf.V4, 4096), ring(t, dir, "calm", ringbuf.V4, 4096)}
	h := newHarness(t, dir, func(c *Config) { c.Logs.Rate = 0.5 }).withLogs()
	telemetry := h.withTelemetry()
	clock := newClock()
	h.on.now = clock.now
	h.start()
	dropped := func() int64 { return sums(t, telemetry, "logs_dropped")[""] }
	if dropped() != 0 || len(sums(t, telemetry, "logs_dropped")) != 1 {
		t.Error("the count of dropped records doesn't start at 0")
	}
	for range 100 {
		push(t, ws[0], slow...)
	}
	push(t, ws[1], slow...)
	h.next()
	h.awaitLogged(6) // 5 of the busy one
	if got := dropped(); got != 95 {
		t.Errorf("%d records dropped, want 95", got)
	}
	h.log("warn: ", "/busy: more than 0.5 log records per second", "logs::rate")
	clock.pass(6 * time.Second) // 3 more
	for range 10 {
		push(t, ws[0], slow...)
	}
	last := read(t, h.shutdown())["busy"]
	if got := h.restLogged(); len(got) != 3 {
		t.Errorf("%d records after 6 s, want 3", len(got))
	}
	if got := dropped(); got != 95+7 {
		t.Errorf("%d records dropped, want 102", got)
	}
	if got := last.int("nixl.transfer.requests{nixl.transfer.direction=transmit}"); got != 110 {
		t.Errorf("%d transfers counted, want 110", got)
	}
	for len(h.lines) > 0 {
		if line := <-h.lines; containsAll(line, []string{"log records per second"}) {
			t.Errorf("reported again: %s", line)
		}
	}
}

func TestBlockedConsumerOfLogsLosesLogRecordsButNoEvents(t *testing.T) {
	dir := t.TempDir()
	w := ring(t, dir, "agent", ringbuf.V4, 4096)
	h := newHarness(t, dir, func(c *Config) { c.Logs.Rate = 1e6 }).withLogs()
	telemetry := h.withTelemetry()
	goOn := make(chan struct{})
	h.consumeLogs = func(context.Context, plog.Logs) error {
		<-goOn
		return nil
	}
	h.start()
	const transfers = maxQueued + 3000
	for i := range transfers {
		push(t, w, slow...)
		if i%500 == 0 {
			h.collect()
			<-h.batches
		}
	}
	h.collect()
	h.log("warn: ", "agent: log records were dropped because the next consumer is slower")
	if got := one(t, wait(t, h.batches, "metrics")).int("nixl.transfer.requests{nixl.transfer.direction=transmit}"); got != transfers {
		t.Errorf("%d transfers counted, want %d", got, transfers)
	}
	close(goOn)
	must.OK(t, h.stop())
	got, dropped := len(h.restLogged()), int(sums(t, telemetry, "logs_dropped")[""])
	if got+dropped != transfers || got < maxQueued || got > maxQueued+maxExported {
		t.Errorf("%d records logged and %d dropped of %d", got, dropped, transfers)
	}
}

func TestShutdownDoesntWaitForABlockedConsumerOfLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := agentHarness(t).withLogs()
		blocked, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		h.consumeLogs = func(context.Context, plog.Logs) error {
			once.Do(func() { close(blocked) })
			<-goOn
			return nil
		}
		h.start()
		h.push(slow...)
		h.next()
		wait(t, blocked, "blocked consumer")
		h.push(slow...)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		must.OK(t, h.receiver.Shutdown(ctx))
		h.log("error: The last log records were not exported", "1 records wait: "+context.DeadlineExceeded.Error())
		if got := one(t, wait(t, h.batches, "metrics")).int(transmitted); got != 2 {
			t.Errorf("%d bytes transmitted, want 2", got)
		}
		close(goOn)
		<-h.own().slow.ended
	})
}

func TestShutdownExportsTheLastLogRecord(t *testing.T) {
	h := newHarness(t, t.TempDir()).onlyLogs()
	h.create()
	s := h.own().slow
	for range 20 { // it may notice the end, or the record, first
		s.ending = make(chan struct{})
		s.queue <- record{failure: tally.Error{Type: ringbuf.TypeErrBackend, Layout: ringbuf.V4}}
		close(s.ending)
		if s.loop(t.Context()); len(h.records) != 1 {
			t.Fatalf("%d exports, want 1", len(h.records))
		}
		<-h.records
	}
	must.OK(t, h.logs.Shutdown(t.Context()))
}

// Records of two runs of an agent can be in one export.
func TestLogRecordsHaveTheResourceOfTheirRun(t *testing.T) {
	h := newHarness(t, t.TempDir()).onlyLogs()
	h.create()
	for name, change := range map[string]func(*record){
		"the same": nil,
		"ID":       func(r *record) { r.ID = "other" },
		"path":     func(r *record) { r.Path = "/other" },
		"layout":   func(r *record) { r.failure.Layout = ringbuf.V1 },
		"resource": func(r *record) { r.Resource = attribute.NewSet() },
		"process":  func(r *record) { r.Process = attribute.NewSet() },
	} {
		first := record{Agent: discovered().Agent, failure: tally.Error{Type: ringbuf.TypeErrBackend, Layout: ringbuf.V4}}
		next, want := first, 1
		if change != nil {
			change(&next)
			want = 2
		}
		if got := h.own().slow.records.build([]record{first, next}).ResourceLogs().Len(); got != want {
			t.Errorf("%s: %d resources, want %d", name, got, want)
		}
	}
	must.OK(t, h.logs.Shutdown(t.Context()))
}

func TestRejectedLogRecordsAreRetriedUnlessTheyAreInvalid(t *testing.T) {
	h := agentHarness(t).withLogs()
	answers := make(chan error, 4)
	h.consumeLogs = func(context.Context, plog.Logs) error { return <-answers }
	h.start()
	transfer := func(sizes ...uint64) {
		for _, size := range sizes {
			h.push(write(size, 2_000_000, 1)...)
		}
		h.next()
	}
	logs := func(want ...int64) {
		t.Helper()
		var got []int64
		for _, r := range h.awaitLogged(len(want)) {
			got = append(got, r.Attributes["nixl.transfer.size"].(int64)) //nolint:errcheck,forcetypeassert // or the test panics
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("sizes (-want +got)\n%s", d)
		}
	}
	transfer(1)
	transfer(2, 3) // wait in the queue, so they are exported together
	answers <- nil
	logs(1)
	answers <- errors.New("backend is down")
	answers <- errors.New("backend is down")
	answers <- nil
	h.log("warn: the next consumer rejected log records, so they are retried", "backend is down")
	logs(2, 3)
	transfer(4)
	answers <- consumererror.NewPermanent(errors.New("invalid record"))
	h.log("error: the next consumer rejected log records, so they are lost", "invalid record")
	transfer(5)
	answers <- nil
	logs(5)
}

func TestShutdownEndsRetries(t *testing.T) {
	h := agentHarness(t).withLogs()
	h.on.retryAfter = time.Hour
	rejected := make(chan struct{}, 1)
	h.consumeLogs = func(context.Context, plog.Logs) error {
		rejected <- struct{}{}
		return errors.New("backend is down")
	}
	h.start()
	h.push(slow...)
	h.next()
	wait(t, rejected, "rejection")
	h.shutdown()
	h.log("error: the next consumer rejected log records, so they are lost", "backend is down")
}

// An endless number of agents must not use an endless amount of memory.
func TestLimitersOfManyAgentsAreForgotten(t *testing.T) {
	s := slowLog{cfg: &LogsConfig{Rate: 0.1}, limiters: make(map[string]*limiter)}
	for i := range 3 * maxLimiters {
		if !s.limiter(strconv.Itoa(i)).Allow() {
			t.Fatalf("agent %d may not log a record", i)
		}
		if len(s.limiters) > maxLimiters {
			t.Fatalf("%d limiters", len(s.limiters))
		}
	}
	if s.limiter(strconv.Itoa(3*maxLimiters - 1)).Allow() {
		t.Error("the last agent may log more than its burst")
	}
}
