// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestSeriesAreTheMetricsOfTheEvents(t *testing.T) {
	l := Ledger{}
	for _, e := range []ringbuf.Event{
		ringbuf.NewEvent(ringbuf.TypeTxBytes, 4096), ringbuf.NewEvent(ringbuf.TypeTxBytes, 4),
		ringbuf.NewEvent(ringbuf.TypeXferTime, 70), ringbuf.NewEvent(ringbuf.TypeErrBackend, 1),
		ringbuf.NewNamedEvent(ringbuf.CategoryError, "NIXL_ERR_BACKEND", 1),
		ringbuf.NewNamedEvent(ringbuf.CategoryBackend, "made_up", 7),
	} {
		l.AddEvent(&e)
	}
	l.AddNamed([]Named{{Name{"telemetry", "agent_telemetry_events_dropped"}, Sums{Count: 2, Sum: 30}}})
	want := Series{
		"nixl.events{nixl.event.category=transfer,nixl.event.name=agent_tx_bytes}":                  2,
		"nixl.transfer.io{nixl.transfer.direction=transmit}":                                        4100,
		"nixl.transfer.size{nixl.transfer.direction=transmit}" + Count:                              2,
		"nixl.transfer.size{nixl.transfer.direction=transmit}" + Sum:                                4100,
		"nixl.events{nixl.event.category=performance,nixl.event.name=agent_xfer_time}":              1,
		"nixl.transfer.duration" + Count:                                                            1,
		"nixl.transfer.duration" + Sum:                                                              70,
		"nixl.events{nixl.event.category=error,nixl.event.name=agent_err_backend}":                  2,
		"nixl.errors{error.type=backend}":                                                           2,
		"nixl.events{nixl.event.category=backend,nixl.event.name=made_up}":                          1,
		"nixl.event.value{nixl.event.category=backend,nixl.event.name=made_up}":                     7,
		"nixl.events{nixl.event.category=telemetry,nixl.event.name=agent_telemetry_events_dropped}": 2,
		"nixl.telemetry.events.dropped":                                                             30,
	}
	if diff := cmp.Diff(want, l.Series()); diff != "" {
		t.Error(diff)
	}
	if n := l.Events(); n != 8 {
		t.Errorf("%d events, want 8", n)
	}
}
