package nixlshmreceiver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/nixl-otel/nixl-otel/internal/watch"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
)

// ringReceiver reports the totals of the agents whose rings a watcher drains.
type ringReceiver struct {
	cfg     *Config
	id      component.ID
	log     *zap.Logger
	next    consumer.Metrics
	obs     *receiverhelper.ObsReport
	watcher *watch.Watcher
	builder *builder
	storage *checkpoints // nil without a storage extension

	host   component.Host
	broken string // what was last reported as the component's status

	cancel context.CancelFunc // nil until Start
	done   sync.WaitGroup
}

// machine is what the receiver asks of the machine that it runs on.
type machine struct {
	now      func() time.Time
	hostname func() (string, error)
}

func newReceiver(cfg *Config, settings receiver.Settings, next consumer.Metrics, on machine) (*ringReceiver, error) {
	obs, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: settings.ID, Transport: "shm", ReceiverCreateSettings: settings,
	})
	if err != nil {
		return nil, err
	}
	r := &ringReceiver{cfg: cfg, id: settings.ID, log: settings.Logger, next: next, obs: obs}
	watched := cfg.watch(r.notice)
	watched.Now = on.now
	if r.watcher, err = watch.New(watched); err != nil {
		return nil, err
	}
	hostname := cfg.HostName
	if hostname == "" {
		if hostname, err = on.hostname(); err != nil {
			return nil, fmt.Errorf("find the host's name, which tells agents of one name apart; set host_name: %w", err)
		}
	}
	r.builder = newBuilder(cfg, metadata.NewMetricsBuilder(cfg.MetricsBuilderConfig, settings), hostname, on.now)
	return r, nil
}

// Start opens the rings that are there and begins to drain and to collect.
// Directories and rings that aren't there yet are waited for.
// The error is a storage extension that is missing.
func (r *ringReceiver) Start(ctx context.Context, host component.Host) error {
	r.host = host
	var store watch.Store
	if r.cfg.StorageID != nil {
		var err error
		if r.storage, err = openCheckpoints(ctx, host, *r.cfg.StorageID, r.id); err != nil {
			return err
		}
		store = r.storage
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.watcher.Start(store)
	r.done.Go(func() { r.loop(ctx) })
	return nil
}

// lastCollection bounds the collection at shutdown where timeout doesn't: what
// takes the metrics may wait for a backend that is down.
const lastCollection = 5 * time.Second

// Shutdown drains and reports once more, and gives up the rings.
func (r *ringReceiver) Shutdown(ctx context.Context) error {
	if r.cancel == nil {
		return nil
	}
	r.cancel()
	r.done.Wait()
	r.cancel = nil
	r.watcher.Stop()
	ctx, cancel := context.WithTimeout(ctx, max(r.cfg.Timeout, lastCollection))
	defer cancel()
	err := r.collect(ctx)
	r.watcher.Close()
	if r.storage != nil {
		// What it stored is to be kept, though the backend may have had all the time.
		err = errors.Join(err, r.storage.close(context.WithoutCancel(ctx)))
	}
	return err
}

// loop collects on the collection interval until ctx ends.
func (r *ringReceiver) loop(ctx context.Context) {
	r.reportStatus()
	timer := time.NewTimer(r.cfg.InitialDelay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
	}
	ticker := time.NewTicker(r.cfg.CollectionInterval)
	defer ticker.Stop()
	for {
		if err := r.collect(ctx); err != nil && ctx.Err() == nil {
			r.log.Error("Metrics were not taken; nothing is lost: totals are cumulative and go out with the next collection",
				zap.Error(err))
		}
		r.reportStatus()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// collect hands the totals on as they are now.
func (r *ringReceiver) collect(ctx context.Context) error {
	if r.cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.cfg.Timeout)
		defer cancel()
	}
	metrics := r.builder.build(ctx, r.watcher)
	points := metrics.DataPointCount()
	if points == 0 {
		r.watcher.Delivered()
		return nil
	}
	ctx = r.obs.StartMetricsOp(ctx)
	err := r.next.ConsumeMetrics(ctx, metrics)
	r.obs.EndMetricsOp(ctx, metadata.Type.String(), points, err)
	if err == nil {
		r.watcher.Delivered()
	}
	return err
}

// reportStatus tells the Collector when rings can't be read, and when they can
// again.
func (r *ringReceiver) reportStatus() {
	err := r.watcher.State()
	switch {
	case err != nil && err.Error() != r.broken:
		r.broken = err.Error()
		componentstatus.ReportStatus(r.host, componentstatus.NewRecoverableErrorEvent(err))
	case err == nil && r.broken != "":
		r.broken = ""
		componentstatus.ReportStatus(r.host, componentstatus.NewEvent(componentstatus.StatusOK))
	}
}

// notice logs what the watcher has to tell.
func (r *ringReceiver) notice(n watch.Notice) {
	var fields []zap.Field
	if n.Path != "" {
		fields = append(fields, zap.String("path", n.Path))
	}
	if n.Err != nil {
		fields = append(fields, zap.Error(n.Err))
	}
	r.log.Log(zapLevel(n.Level), n.Message(), fields...)
}

func zapLevel(l slog.Level) zapcore.Level {
	switch {
	case l >= slog.LevelError:
		return zapcore.ErrorLevel
	case l >= slog.LevelWarn:
		return zapcore.WarnLevel
	case l >= slog.LevelInfo:
		return zapcore.InfoLevel
	default:
		return zapcore.DebugLevel
	}
}
