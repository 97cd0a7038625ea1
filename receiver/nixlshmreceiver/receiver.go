// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// ringReceiver reports the totals of the agents on a host.
type ringReceiver struct {
	cfg       *Config
	id        component.ID
	log       *zap.Logger
	next      consumer.Metrics // nil without a metrics pipeline
	obs       *receiverhelper.ObsReport
	slow      *slowLog // nil without a logs pipeline
	now       func() time.Time
	telemetry telemetry
	rings     *engine.Engine
	builder   *builder
	hostname  string
	storage   *checkpoints // nil without a storage extension

	broken string // the error last reported as the component's status; empty if OK

	life       sync.Mutex
	collectors []component.Host // one for each pipeline that has started
	status     *componentstatus.Event
	started    bool
	startErr   error
	cancel     context.CancelFunc              // nil unless running
	run        func(func(ctx context.Context)) // runs a function until the shutdown
	done       sync.WaitGroup                  // waits for these functions
}

// machine is what a test of the receiver replaces.
type machine struct {
	now        func() time.Time
	hostname   func() (string, error)
	retryAfter time.Duration        // between two attempts to export log records
	adapt      func(*engine.Config) // may be nil
}

func newReceiver(cfg *Config, settings receiver.Settings, on machine) (r *ringReceiver, err error) {
	r = &ringReceiver{cfg: cfg, id: settings.ID, log: settings.Logger, now: on.now}
	if r.telemetry.TelemetryBuilder, err = metadata.NewTelemetryBuilder(settings.TelemetrySettings); err != nil {
		return nil, err
	}
	if r.hostname = cfg.Resource[semconv.HostName]; r.hostname == "" {
		if r.hostname, err = on.hostname(); err != nil {
			return nil, fmt.Errorf("get the host name: %w; set host.name of resource instead", err)
		}
	}
	watched := cfg.engine(r.notice)
	watched.Now, watched.Telemetry = on.now, r.telemetry.host()
	watched.Stream = newResources(cfg, cfg.ResourceAttributes, r.hostname).of
	if on.adapt != nil {
		on.adapt(&watched)
	}
	if r.rings, err = engine.New(watched); err != nil {
		return nil, err
	}
	// The scope has the version of the catalog. With the version of the Collector,
	// each build would start new series.
	settings.BuildInfo.Version = semconv.Version
	r.builder = newBuilder(cfg, metadata.NewMetricsBuilder(cfg.MetricsBuilderConfig, settings))
	return r, nil
}

// start starts discovery and draining, unless another pipeline has. It doesn't wait
// for directories or rings: those that can't be read are logged and retried. A
// missing storage extension is an error.
func (r *ringReceiver) start(ctx context.Context, collector component.Host) error {
	r.life.Lock()
	defer r.life.Unlock()
	r.collectors = append(r.collectors, collector)
	if r.status != nil {
		componentstatus.ReportStatus(collector, r.status)
	}
	if !r.started {
		r.started = true
		r.startErr = r.open(ctx, collector)
	}
	return r.startErr
}

func (r *ringReceiver) open(ctx context.Context, collector component.Host) error {
	var store engine.Storage
	if r.cfg.StorageID != nil {
		var err error
		if r.storage, err = openCheckpoints(ctx, collector, *r.cfg.StorageID, r.id); err != nil {
			return err
		}
		store = r.storage
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.run = func(fn func(context.Context)) { r.done.Go(func() { fn(ctx) }) }
	if r.slow != nil {
		r.rings.Watch(r.slow.watch(r.rings.Report))
	}
	return errors.Join(r.rings.Start(store), r.telemetry.observe(r.rings))
}

// shutdownStep limits each step of a shutdown: the last collection if timeout doesn't, the last log
// records, and closing. The next consumer may wait for a backend that is down, and file systems and
// the storage extension may hang.
const shutdownStep = 5 * time.Second

// shutdown collects one last time and closes the rings. With storage, rings are drained and stored until then,
// because an export can take a while. It never waits past the deadline of ctx. The first pipeline that is shut down ends the receiver, because
// the consumers of all pipelines still work at that time. A failed export is logged, but
// isn't an error of the shutdown: the Collector would exit instead of reloading its
// configuration.
func (r *ringReceiver) shutdown(ctx context.Context) error {
	r.life.Lock()
	end := r.cancel
	r.started, r.cancel = true, nil
	r.life.Unlock()
	if end == nil {
		return nil
	}
	end()
	if err := r.collectLast(ctx); err != nil {
		lost := "set storage to keep the events since the previous export, which are lost"
		if r.storage != nil {
			lost = "totals are stored, so the next start exports them"
		}
		r.log.Error("The last collection was not exported; "+lost, zap.Error(err))
	}
	if r.slow != nil {
		if err := r.slow.stop(ctx); err != nil {
			r.log.Error("The last log records were not exported, so they are lost", zap.Error(err))
		}
	}
	r.telemetry.Shutdown()
	ctx, cancel := context.WithTimeout(ctx, shutdownStep)
	defer cancel()
	err := r.rings.Stop(ctx)
	if r.storage != nil {
		err = errors.Join(err, r.storage.close(ctx))
	}
	return err
}

// part returns a context with a limit. If ctx has a deadline, a quarter of the time remains for
// closing the rings.
func part(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)*3/4)
	}
	return context.WithTimeout(ctx, limit)
}

// collectLast collects after the loop has ended.
func (r *ringReceiver) collectLast(ctx context.Context) error {
	ctx, cancel := part(ctx, max(r.cfg.Timeout, shutdownStep))
	defer cancel()
	result := make(chan error, 1)
	go func() { // outlives collectLast if the consumer ignores the context
		r.done.Wait()
		result <- r.collect(ctx, true)
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// loop collects on the collection interval until ctx is done.
func (r *ringReceiver) loop(ctx context.Context) {
	timer := time.NewTimer(r.cfg.InitialDelay)
	defer timer.Stop()
	for {
		r.reportStatus()
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(r.cfg.CollectionInterval)
		if err := r.collect(ctx, false); err != nil && ctx.Err() == nil {
			r.log.Error("Metrics were not exported; totals are cumulative, so the next export includes them", zap.Error(err))
		}
	}
}

// collect drains all rings and exports the totals.
func (r *ringReceiver) collect(ctx context.Context, last bool) error {
	if r.cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.cfg.Timeout)
		defer cancel()
	}
	taken := r.now()
	collection, err := r.rings.Collect(ctx, last)
	if err != nil {
		return err
	}
	r.telemetry.collected(collection.Snapshots)
	if r.slow != nil {
		r.slow.count()
	}
	if r.next == nil {
		r.rings.Delivered(collection)
		return nil
	}
	metrics := r.builder.build(taken, collection.Snapshots)
	collection.Snapshots = nil // the consumer may keep the metrics for a while
	if points := metrics.DataPointCount(); points > 0 {
		ctx = r.obs.StartMetricsOp(ctx)
		err = r.next.ConsumeMetrics(ctx, metrics)
		r.obs.EndMetricsOp(ctx, metadata.Type.String(), points, err)
		if err != nil {
			return fmt.Errorf("the next consumer rejected the metrics: %w", err)
		}
	}
	r.rings.Delivered(collection)
	return nil
}

// reportStatus updates the status of the component when rings can no longer be read,
// and when they can be read again.
func (r *ringReceiver) reportStatus() {
	text, event := "", componentstatus.NewEvent(componentstatus.StatusOK)
	if err := r.rings.State().Err(); err != nil {
		text, event = err.Error(), componentstatus.NewRecoverableErrorEvent(err)
	}
	if text == r.broken {
		return
	}
	r.broken = text
	r.life.Lock()
	defer r.life.Unlock()
	r.status = event // for each pipeline
	for _, c := range r.collectors {
		componentstatus.ReportStatus(c, event)
	}
}

// notice logs a notice.
func (r *ringReceiver) notice(n notice.Notice) {
	var fields []zap.Field
	for _, f := range [][2]string{{"path", n.Path}, {semconv.K8SPodUID, n.Pod}, {semconv.ContainerID, n.Container}} {
		if f[1] != "" {
			fields = append(fields, zap.String(f[0], f[1]))
		}
	}
	if n.Err != nil {
		fields = append(fields, zap.Error(n.Err))
	}
	// The caller and the stack would be those of this function for all notices.
	r.log.WithOptions(zap.WithCaller(false), zap.AddStacktrace(zapcore.FatalLevel)).Log(zapcore.Level(n.Level/4), n.Message(), fields...) // the levels of slog are four apart
}
