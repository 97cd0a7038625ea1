// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// awaitLogged waits for a number of log records.
func (h *harness) awaitLogged(n int) plog.Logs {
	h.tb.Helper()
	all := plog.NewLogs()
	for all.LogRecordCount() < n {
		wait(h.tb, h.records, "log records").ResourceLogs().MoveAndAppendTo(all.ResourceLogs())
	}
	if got := all.LogRecordCount(); got > n {
		h.tb.Fatalf("%d log records, want %d", got, n)
	}
	return all
}

// restLogged returns the remaining log records after a shutdown.
func (h *harness) restLogged() plog.Logs {
	all := plog.NewLogs()
	for len(h.records) > 0 {
		(<-h.records).ResourceLogs().MoveAndAppendTo(all.ResourceLogs())
	}
	return all
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
	if n := h.restLogged().LogRecordCount(); n != 3 {
		t.Errorf("%d records after 6 s, want 3", n)
	}
	if got := dropped(); got != 95+7 {
		t.Errorf("%d records dropped, want 102", got)
	}
	if got := last.int(requests); got != 110 {
		t.Errorf("%d transfers counted, want 110", got)
	}
	if n := h.lines.FilterMessageSnippet("log records per second").Len(); n != 1 {
		t.Errorf("reported %d times, want once", n)
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
			h.next()
		}
	}
	last := h.next()
	h.log("warn: ", "agent: log records were dropped because the next consumer is slower")
	if got := one(t, last).int(requests); got != transfers {
		t.Errorf("%d transfers counted, want %d", got, transfers)
	}
	close(goOn)
	must.OK(t, h.stop())
	got, dropped := h.restLogged().LogRecordCount(), int(sums(t, telemetry, "logs_dropped")[""])
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

func TestRejectedLogRecordsAreRetriedUnlessTheyAreInvalid(t *testing.T) {
	h := agentHarness(t).withLogs()
	asked, answers := make(chan struct{}, 10), make(chan error, 4)
	h.consumeLogs = func(context.Context, plog.Logs) error {
		asked <- struct{}{}
		return <-answers
	}
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
		for _, rl := range h.awaitLogged(len(want)).ResourceLogs().All() {
			for _, r := range rl.ScopeLogs().At(0).LogRecords().All() {
				size, _ := r.Attributes().Get(semconv.TransferSizeBytes)
				got = append(got, size.Int())
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("sizes (-want +got)\n%s", d)
		}
	}
	transfer(1)
	wait(t, asked, "first export")
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
