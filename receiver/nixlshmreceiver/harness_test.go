// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// patience is how long a test waits for something that must happen.
const patience = 30 * time.Second

// byHand is an initial delay longer than any test, so that only the test itself and
// the shutdown collect.
const byHand = time.Hour

const testHost = "test-host"

// harness runs a receiver and captures everything that it emits.
type harness struct {
	tb       testing.TB
	receiver receiver.Metrics // nil without a metrics pipeline
	logs     receiver.Logs    // nil without a logs pipeline
	agent    *ringbuf.Writer  // see agentHarness
	on       machine
	settings receiver.Settings
	cfg      *Config

	batches  chan pmetric.Metrics        // accepted metrics
	records  chan plog.Logs              // accepted log records; nil without a logs pipeline
	statuses chan *componentstatus.Event // of the component
	lines    *observer.ObservedLogs
	consume  func(context.Context, pmetric.Metrics) error // decides whether a batch is accepted; nil accepts all

	consumeLogs func(context.Context, plog.Logs) error // the same for log records

	extensions map[component.ID]component.Component

	runInterval time.Duration // rings are drained at least four times as often

	stop func() error
}

// newHarness prepares a receiver that watches dir. It collects only when the test
// calls next or collect, and at shutdown.
func newHarness(tb testing.TB, dir string, change ...func(*Config)) *harness {
	tb.Helper()
	h := &harness{
		tb:       tb,
		on:       machine{now: time.Now, hostname: func() (string, error) { return testHost, nil }, retryAfter: time.Millisecond},
		settings: receivertest.NewNopSettings(metadata.Type),
		cfg:      createDefaultConfig(),
		batches:  make(chan pmetric.Metrics, 1<<10),
		statuses: make(chan *componentstatus.Event, 1<<10),

		runInterval: 2 * time.Millisecond,
	}
	core, lines := observer.New(zapcore.DebugLevel)
	h.settings.Logger, h.lines = zap.New(core), lines
	h.cfg.Directories = []string{dir}
	h.cfg.InitialDelay = byHand
	h.cfg.CollectionInterval = time.Hour
	// The receiver asks the kernel from time to time, so the metric appears late.
	h.cfg.Metrics.NixlAgentUp.Enabled = false
	enableOptional(h.cfg)
	for _, f := range change {
		f(h.cfg)
	}
	must.OK(tb, h.cfg.Validate())
	return h
}

// enableOptional enables the metrics that are off by default.
func enableOptional(c *Config) {
	m := &c.Metrics
	m.NixlEvents.Enabled, m.NixlMemoryLastSize.Enabled, m.NixlTransferLastSize.Enabled = true, true, true
	m.NixlTransferLastDuration.Enabled, m.NixlTransferLastPostDuration.Enabled = true, true
}

// agentHarness is newHarness for the directory of one agent.
func agentHarness(t *testing.T, change ...func(*Config)) *harness {
	t.Helper()
	dir := t.TempDir()
	w := ring(t, dir, "agent", ringbuf.V4, 64)
	h := newHarness(t, dir, change...)
	h.agent = w
	return h
}

// rarely lets the receiver drain a ring only when it opens it, and at a collection.
func (h *harness) rarely() *harness {
	h.runInterval = time.Hour
	return h
}

// push writes events to the agent's ring.
func (h *harness) push(events ...ringbuf.Event) {
	h.tb.Helper()
	push(h.tb, h.agent, events...)
}

// drained waits until nothing is pending in the agent's ring.
func (h *harness) drained() {
	h.tb.Helper()
	drained(h.tb, h.agent.Path())
}

// start creates and starts the receiver, and waits until it has opened all files as rings. The
// receiver is shut down at the end of the test.
func (h *harness) start() *harness {
	h.tb.Helper()
	rings := 0
	for _, dir := range h.cfg.Directories {
		_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				rings++
			}
			return err // of a missing directory
		})
	}
	return h.startWith(rings)
}

// startWith is like start, but waits for a number of rings.
func (h *harness) startWith(rings int) *harness {
	h.tb.Helper()
	h.create()
	var stops []func(context.Context) error
	for _, c := range h.components() {
		must.OK(h.tb, c.Start(h.tb.Context(), h))
		stops = append(stops, c.Shutdown)
	}
	h.stop = sync.OnceValue(func() error {
		var errs []error
		for _, stop := range stops {
			errs = append(errs, stop(context.Background()))
		}
		return errors.Join(errs...)
	})
	h.tb.Cleanup(func() { _ = h.stop() })
	h.opened(rings)
	return h
}

// create creates a receiver for each pipeline.
func (h *harness) create() {
	h.tb.Helper()
	on := h.on
	on.adapt = func(c *engine.Config) {
		if c.RunInterval = h.runInterval; h.on.adapt != nil {
			h.on.adapt(c)
		}
	}
	f := newFactory(on)
	if h.batches != nil {
		next, err := consumer.NewMetrics(h.take)
		must.OK(h.tb, err)
		h.receiver, err = f.CreateMetrics(h.tb.Context(), h.settings, h.cfg, next)
		must.OK(h.tb, err)
	}
	if h.records != nil {
		next, err := consumer.NewLogs(h.takeLogs)
		must.OK(h.tb, err)
		h.logs, err = f.CreateLogs(h.tb.Context(), h.settings, h.cfg, next)
		must.OK(h.tb, err)
	}
}

// components returns the receivers of all pipelines.
func (h *harness) components() (list []component.Component) {
	if h.receiver != nil {
		list = append(list, h.receiver)
	}
	if h.logs != nil {
		list = append(list, h.logs)
	}
	return list
}

// opened waits until a number of rings are open.
func (h *harness) opened(rings int) {
	h.tb.Helper()
	must.EventuallyTrue(h.tb, fmt.Sprintf("%d rings open", rings), func() bool { return h.rings().State().Open >= rings })
}

func (h *harness) rings() *engine.Engine { return h.own().rings }

// own returns the receiver that the pipelines share.
func (h *harness) own() *ringReceiver {
	return h.components()[0].(*pipeline).ringReceiver //nolint:forcetypeassert,errcheck // the factory made it
}

func (h *harness) take(ctx context.Context, m pmetric.Metrics) error {
	if h.consume != nil {
		if err := h.consume(ctx, m); err != nil {
			return err
		}
	}
	h.batches <- m
	return nil
}

func (h *harness) takeLogs(ctx context.Context, l plog.Logs) error {
	if h.consumeLogs != nil {
		if err := h.consumeLogs(ctx, l); err != nil {
			return err
		}
	}
	h.records <- l
	return nil
}

// next collects and returns the next batch.
func (h *harness) next() pmetric.Metrics {
	h.tb.Helper()
	if h.cfg.InitialDelay == byHand {
		must.OK(h.tb, h.own().collect(h.tb.Context(), false))
	}
	return wait(h.tb, h.batches, "metrics")
}

// shutdown shuts the receiver down and returns the last batch.
func (h *harness) shutdown() pmetric.Metrics {
	h.tb.Helper()
	must.OK(h.tb, h.stop())
	last := pmetric.NewMetrics()
	for len(h.batches) > 0 {
		last = <-h.batches
	}
	return last
}

// until waits for a batch for which done returns true.
func (h *harness) until(done func(agents) bool) {
	h.tb.Helper()
	for {
		if done(read(h.tb, h.next())) {
			return
		}
	}
}

// status waits for the next status of the component.
func (h *harness) status() *componentstatus.Event {
	h.tb.Helper()
	return wait(h.tb, h.statuses, "component status")
}

// wait waits for a value.
func wait[T any](tb testing.TB, c <-chan T, what string) T {
	tb.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		tb.Fatalf("no %s within %v", what, patience)
		panic("unreachable")
	}
}

var _ componentstatus.Reporter = (*harness)(nil)

// GetExtensions implements [component.Host].
func (h *harness) GetExtensions() map[component.ID]component.Component { return h.extensions }

// Report implements [componentstatus.Reporter].
func (h *harness) Report(e *componentstatus.Event) { h.statuses <- e }

// logged returns the lines of the log, such as `warn: text: map[path:/rings/agent]`.
func (h *harness) logged() (lines []string) {
	for _, e := range h.lines.All() {
		lines = append(lines, fmt.Sprintf("%v: %s: %v", e.Level, e.Message, e.ContextMap()))
	}
	return lines
}

// log waits for a line that contains all parts.
func (h *harness) log(parts ...string) {
	h.tb.Helper()
	must.Eventually(h.tb, func() string {
		lines := h.logged()
		if slices.ContainsFunc(lines, func(line string) bool { return containsAll(line, parts) }) {
			return ""
		}
		return fmt.Sprintf("no log line with %q, but\n%s", parts, strings.Join(lines, "\n"))
	})
}

func containsAll(s string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

// backend returns a consumer that rejects metrics until down is closed.
func backend(down <-chan struct{}) func(context.Context, pmetric.Metrics) error {
	return func(context.Context, pmetric.Metrics) error {
		select {
		case <-down:
			return nil
		default:
			return errors.New("backend is down")
		}
	}
}
