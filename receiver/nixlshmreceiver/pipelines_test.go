// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
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
			h := agentHarness(t).withLogs()
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
			h.opened(1)
			const transfers = 15 // as many as fit
			for range transfers {
				h.push(slow...)
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
			got := []int{int(one(t, h.shutdown()).int(requests)), h.restLogged().LogRecordCount()}
			if d := cmp.Diff([]int{transfers, transfers}, got); d != "" {
				t.Errorf("transfers in metrics and log (-want +got)\n%s", d)
			}
		})
	}
}

// A Collector that reloads its configuration shuts the old receiver down first.
func TestPipelinesAfterAShutdownUseANewReceiver(t *testing.T) {
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
	h.push(slow...)
	must.OK(t, h.stop())
	if n := h.restLogged().LogRecordCount(); n != 1 {
		t.Errorf("%d records at shutdown, want 1", n)
	}
}

func TestStatusIsReportedInEveryPipeline(t *testing.T) {
	t.Parallel() // it waits for the next check of the directory
	h := newHarness(t, t.TempDir()+"/missing", often).withLogs().startWith(0)
	for range 2 {
		h.mustSay(componentstatus.StatusRecoverableError, "telemetry directory can't be read")
	}
}
