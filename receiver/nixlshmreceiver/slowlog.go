// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// slowLog exports a log record for each slow transfer and each error. Draining calls
// add, which only appends to a bounded queue. A goroutine exports the queue.
type slowLog struct {
	cfg     *LogsConfig
	log     *zap.Logger
	now     func() time.Time
	next    consumer.Logs
	obs     *receiverhelper.ObsReport
	records recordBuilder

	queue   chan record
	mu      sync.Mutex            // guards waiting
	waiting map[engine.Holder]int // records in the queue
	limits  limits
	report  func(notice.Notice)
	dropped metric.Int64Counter
	tooMany string // the warning about an agent that exceeds the limits

	retryAfter time.Duration // until a rejected export is retried first
	rejected   string        // what reject logged last; empty once records are accepted

	ending  chan struct{} // stop closes it
	started bool
	done    sync.WaitGroup
	cancel  context.CancelFunc // cancels exports
}

// record is a slow transfer or an error.
type record struct {
	engine.Agent
	read     time.Time
	transfer tally.Transfer // set if its cause isn't 0
	failure  tally.Error    // set otherwise
}

const (
	// maxQueued is the maximum number of records that wait for the next consumer. One
	// round of drains can find as many as the agents' bursts allow.
	maxQueued = 8192
	// maxHeld is the maximum number of these records of one container, so that those of
	// others find room.
	maxHeld = maxQueued / 8
	// maxExported is the maximum number of records in an export.
	maxExported = 256
	// maxRetry is how long a rejected export is retried, as in the exporters, and
	// maxPause is the longest pause between two attempts.
	maxRetry, maxPause = 5 * time.Minute, 30 * time.Second
)

func newSlowLog(r *ringReceiver, on machine, settings receiver.Settings, next consumer.Logs, obs *receiverhelper.ObsReport) *slowLog {
	settings.BuildInfo.Version = semconv.Version // like the metrics
	return &slowLog{
		cfg: &r.cfg.Logs, log: settings.Logger, now: on.now, dropped: r.telemetry.ReceiverNixlShmLogsDropped, next: next, obs: obs,
		records: recordBuilder{
			LogsBuilder: metadata.NewLogsBuilder(settings),
			resources:   newResources(r.cfg, forLogs(r.cfg.ResourceAttributes), r.builder.hostname),
			cfg:         &r.cfg.Logs,
		},
		queue:      make(chan record, maxQueued),
		waiting:    make(map[engine.Holder]int),
		retryAfter: on.retryAfter,
		limits:     limits{rate: rate.Limit(r.cfg.Logs.Rate), burst: r.cfg.Logs.burst(), agents: make(map[string]*rate.Limiter)},
		ending:     make(chan struct{}),
		tooMany: fmt.Sprintf("more than %v log records per second, so some were dropped; "+
			"raise logs::slow_transfer or logs::rate", r.cfg.Logs.Rate),
	}
}

// watch returns the functions that the goroutine that drains the rings calls.
func (s *slowLog) watch(report func(notice.Notice)) *engine.Watch {
	s.report = report
	s.dropped.Add(context.Background(), 0) // rate() misses the first value of a series
	slow := s.cfg.slow()
	w := &engine.Watch{Transfer: func(a *engine.Agent, t *tally.Transfer) {
		if slow.Check(t) {
			s.add(record{Agent: *a, read: s.now(), transfer: *t})
		}
	}}
	if s.cfg.Errors {
		w.Error = func(a *engine.Agent, e tally.Error) {
			s.add(record{Agent: *a, read: s.now(), failure: e})
		}
	}
	return w
}

// add queues a record, or drops it.
func (s *slowLog) add(r record) {
	b := s.limits.of(r.ID, r.read)
	switch {
	case !b.AllowN(r.read, 1):
		s.drop(&r, s.tooMany)
	case !s.enqueue(r):
		s.drop(&r, tooSlow)
	}
}

// enqueue reports whether there was room for a record.
func (s *slowLog) enqueue(r record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[r.Holder] >= maxHeld && !r.Holder.Shared {
		return false
	}
	select {
	case s.queue <- r:
		s.waiting[r.Holder]++
		return true
	default:
		return false
	}
}

// dequeued records that a record has left the queue.
func (s *slowLog) dequeued(r *record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[r.Holder]--; s.waiting[r.Holder] == 0 {
		delete(s.waiting, r.Holder)
	}
}

const tooSlow = "log records were dropped because the next consumer is slower than the agents write; check the exporter"

// drop counts and reports a dropped record.
func (s *slowLog) drop(r *record, why string) {
	s.dropped.Add(context.Background(), 1)
	s.report(notice.Notice{
		Kind: notice.LogsDropped, Level: slog.LevelWarn, Path: r.Path, Pod: r.Holder.Pod, Container: r.Holder.Container, Text: why,
	})
}

// start starts exporting.
func (s *slowLog) start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.started = cancel, true
	s.done.Go(func() { s.loop(ctx) })
}

// stop exports the queue and ends the goroutine. If ctx has a deadline, stop leaves a
// quarter of the time for closing the rings. It doesn't wait for a consumer that hangs.
func (s *slowLog) stop(ctx context.Context) error {
	if !s.started {
		return nil
	}
	defer s.cancel()
	limit := lastCollection
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)*3/4)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	close(s.ending)
	ended := make(chan struct{})
	go func() {
		s.done.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d records wait: %w", len(s.queue), ctx.Err())
	}
}

// loop exports records until stop.
func (s *slowLog) loop(ctx context.Context) {
	batch := make([]record, 0, maxExported)
	for {
		select {
		case r := <-s.queue:
			s.dequeued(&r)
			s.export(ctx, s.fill(append(batch[:0], r)))
		case <-s.ending:
			for len(s.queue) > 0 && ctx.Err() == nil {
				s.export(ctx, s.fill(batch[:0]))
			}
			return
		}
	}
}

// fill adds queued records to a batch.
func (s *slowLog) fill(batch []record) []record {
	for len(batch) < maxExported {
		select {
		case r := <-s.queue:
			s.dequeued(&r)
			batch = append(batch, r)
		default:
			return batch
		}
	}
	return batch
}

// export exports a batch. It retries for up to maxRetry, unless the consumer rejects the
// batch permanently. If one of several consumers accepts the batch, a retry sends it a
// duplicate.
func (s *slowLog) export(ctx context.Context, batch []record) {
	ctx = s.obs.StartLogsOp(ctx)
	err := s.next.ConsumeLogs(ctx, s.records.build(batch))
	pause := s.retryAfter
	for began := time.Now(); err != nil && !consumererror.IsPermanent(err) && time.Since(began) < maxRetry && s.wait(err, pause); {
		err = s.next.ConsumeLogs(ctx, s.records.build(batch))
		pause = min(2*pause, maxPause)
	}
	s.obs.EndLogsOp(ctx, metadata.Type.String(), len(batch), err)
	if err != nil {
		s.reject("The next consumer rejected log records, so they are lost", err)
	} else {
		s.rejected = ""
	}
}

// wait waits until the next attempt. It returns false if stop was called before.
func (s *slowLog) wait(err error, pause time.Duration) bool {
	select {
	case <-s.ending:
		return false
	default:
	}
	s.reject(fmt.Sprintf("The next consumer rejected log records; retrying for up to %v", maxRetry), err)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ending: // a last attempt
	}
	return true
}

// reject logs a rejection, unless it has logged the same since records were last
// accepted.
func (s *slowLog) reject(text string, err error) {
	if s.rejected != text {
		s.rejected = text
		s.log.Error(text, zap.Error(err))
	}
}

// limits limits the log records of each agent.
type limits struct {
	rate   rate.Limit // per second
	burst  int
	agents map[string]*rate.Limiter // by ID
}

// maxBuckets is the number of buckets from which on those of idle agents are removed.
const maxBuckets = 4096

// of returns the bucket of an agent.
func (l *limits) of(id string, now time.Time) *rate.Limiter {
	if b := l.agents[id]; b != nil {
		return b
	}
	if len(l.agents) >= maxBuckets {
		for id, b := range l.agents {
			if b.TokensAt(now) == float64(l.burst) { // as good as a new one
				delete(l.agents, id)
			}
		}
	}
	b := rate.NewLimiter(l.rate, l.burst)
	l.agents[id] = b
	return b
}
