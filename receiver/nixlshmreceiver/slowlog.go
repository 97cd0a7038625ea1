// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/time/rate"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// slowLog exports a log record for each slow transfer and each error. Draining calls
// add, which never blocks: it queues the record or drops it. A goroutine exports the queue.
type slowLog struct {
	cfg     *LogsConfig
	now     func() time.Time
	next    consumer.Logs
	obs     *receiverhelper.ObsReport
	records recordBuilder
	report  func(notice.Notice)

	counter metric.Int64Counter // of dropped records
	dropped atomic.Int64        // records since count was called

	limiters map[string]*limiter // by the agent's ID
	queue    chan record
	batch    []record // that is exported

	retryAfter time.Duration
	ending     chan struct{}      // stop closes it
	ended      chan struct{}      // closed when the goroutine ends; nil before start
	cancel     context.CancelFunc // cancels exports
}

// limiter limits the records of an agent.
type limiter struct {
	*rate.Limiter
	reported bool // that a record was refused, since one was allowed
}

// record is a slow transfer or an error.
type record struct {
	engine.Agent
	read     time.Time
	transfer tally.Transfer // set if it has a layout
	failure  tally.Error    // set otherwise
}

const (
	// maxQueued is the maximum number of records that wait for the next consumer.
	maxQueued = 8192
	// maxExported is the maximum number of records in an export.
	maxExported = 256
	// maxLimiters is the maximum number of agents whose records are remembered.
	maxLimiters = 8192
)

func newSlowLog(r *ringReceiver, on machine, settings receiver.Settings, next consumer.Logs, obs *receiverhelper.ObsReport) *slowLog {
	settings.BuildInfo.Version = semconv.Version // like the metrics
	return &slowLog{
		cfg: &r.cfg.Logs, now: on.now, next: next, obs: obs,
		records: recordBuilder{
			LogsBuilder: metadata.NewLogsBuilder(settings),
			resources:   newResources(r.cfg, forLogs(r.cfg.ResourceAttributes), r.hostname),
			cfg:         &r.cfg.Logs,
		},
		counter:    r.telemetry.ReceiverNixlShmLogsDropped,
		limiters:   make(map[string]*limiter),
		queue:      make(chan record, maxQueued),
		retryAfter: on.retryAfter,
		ending:     make(chan struct{}),
	}
}

// watch returns the functions that the goroutine that drains the rings calls.
func (s *slowLog) watch(report func(notice.Notice)) (transfer func(*engine.Agent, *tally.Transfer), failure func(*engine.Agent, tally.Error)) {
	s.report = report
	s.count() // rate() misses the first value of a series
	limit := uint64(s.cfg.SlowTransfer.Microseconds())
	transfer = func(a *engine.Agent, t *tally.Transfer) {
		if limit == 0 || t.Duration <= limit {
			return
		}
		if now := s.now(); s.allow(a, now) {
			s.add(record{Agent: *a, read: now, transfer: *t})
		}
	}
	if s.cfg.Errors {
		failure = func(a *engine.Agent, e tally.Error) {
			if now := s.now(); s.allow(a, now) {
				s.add(record{Agent: *a, read: now, failure: e})
			}
		}
	}
	return transfer, failure
}

// allow reports whether an agent may log a record. It is called for each error of an agent that writes
// nothing else, so it does little.
func (s *slowLog) allow(a *engine.Agent, now time.Time) bool {
	l := s.limiter(a.ID)
	allowed := l.AllowN(now, 1)
	if !allowed {
		s.dropped.Add(1)
		if !l.reported {
			s.reportDrop(a, fmt.Sprintf("more than %v log records per second, so some were dropped; raise logs::slow_transfer or logs::rate", s.cfg.Rate))
		}
	}
	l.reported = !allowed
	return allowed
}

// count adds the dropped records to the receiver's own metric.
func (s *slowLog) count() { s.counter.Add(context.Background(), s.dropped.Swap(0)) }

// add queues a record, or drops it.
func (s *slowLog) add(r record) {
	select {
	case s.queue <- r:
	default:
		s.dropped.Add(1)
		s.reportDrop(&r.Agent, "log records were dropped because the next consumer is slower than the agents write; check the exporter")
	}
}

func (s *slowLog) limiter(id string) *limiter {
	l, ok := s.limiters[id]
	if !ok {
		if len(s.limiters) >= maxLimiters {
			clear(s.limiters) // each agent may log a burst again
		}
		l = &limiter{Limiter: rate.NewLimiter(rate.Limit(s.cfg.Rate), s.cfg.burst())}
		s.limiters[id] = l
	}
	return l
}

func (s *slowLog) reportDrop(a *engine.Agent, why string) {
	s.report(notice.Notice{
		Kind: notice.LogsDropped, Level: slog.LevelWarn, Path: a.Path, Pod: a.Holder.Pod, Container: a.Holder.Container, Text: why,
	})
}

// start starts exporting.
func (s *slowLog) start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.ended = cancel, make(chan struct{})
	go func() {
		defer close(s.ended)
		s.loop(ctx)
	}()
}

// stop exports the queue and ends the goroutine. It doesn't wait for a consumer that hangs.
func (s *slowLog) stop(ctx context.Context) error {
	if s.ended == nil {
		return nil
	}
	defer s.cancel()
	ctx, cancel := part(ctx, shutdownStep)
	defer cancel()
	close(s.ending)
	select {
	case <-s.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d records wait: %w", len(s.queue), ctx.Err())
	}
}

// loop exports records until stop.
func (s *slowLog) loop(ctx context.Context) {
	for {
		select {
		case r := <-s.queue:
			s.export(ctx, r)
		case <-s.ending:
			for len(s.queue) > 0 && ctx.Err() == nil {
				s.export(ctx, <-s.queue)
			}
			return
		}
	}
}

// export exports a record, and those in the queue with it. If the consumer rejects them, but
// not permanently, export retries until stop, because receivers must. The queue drops what
// arrives meanwhile.
func (s *slowLog) export(ctx context.Context, first record) {
	s.batch = append(s.batch[:0], first)
	for len(s.batch) < maxExported && len(s.queue) > 0 {
		s.batch = append(s.batch, <-s.queue)
	}
	ctx = s.obs.StartLogsOp(ctx)
	err := s.next.ConsumeLogs(ctx, s.records.build(s.batch))
	for err != nil && !consumererror.IsPermanent(err) && s.wait() {
		s.report(notice.Notice{Kind: notice.LogsDropped, Level: slog.LevelWarn, Text: "the next consumer rejected log records, so they are retried", Err: err})
		err = s.next.ConsumeLogs(ctx, s.records.build(s.batch))
	}
	s.obs.EndLogsOp(ctx, metadata.Type.String(), len(s.batch), err)
	if err != nil {
		s.report(notice.Notice{Kind: notice.LogsDropped, Level: slog.LevelError, Text: "the next consumer rejected log records, so they are lost", Err: err})
	}
}

// wait waits until the next attempt. It returns false if stop was called.
func (s *slowLog) wait() bool {
	select {
	case <-time.After(s.retryAfter):
		return true
	case <-s.ending:
		return false
	}
}
