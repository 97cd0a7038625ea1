// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Without storage, a Collector that restarts doesn't know the earlier registrations.
func TestMemoryUsageIsAbsentAfterTheCollectorRestarts(t *testing.T) {
	const usage, registered = "nixl.memory.usage", 1 << 20
	dir := t.TempDir()
	w := ring(t, dir, "agent", ringbuf.V4, 64)
	push(t, w, ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, registered))
	if got := one(t, newHarness(t, dir).start().shutdown()).int(usage); got != registered {
		t.Errorf("usage is %d before the restart of the Collector, want %d", got, registered)
	}

	h := newHarness(t, dir).start()
	for _, e := range []ringbuf.Event{
		ringbuf.NewEvent(ringbuf.TypeMemoryDeregistered, registered), ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 4*registered),
	} {
		push(t, w, e)
		if v, ok := one(t, h.next()).points[usage]; ok {
			t.Errorf("usage is %v after the restart of the Collector, want none", v)
		}
	}

	// The usage is known again once the agent has restarted.
	w = ring(t, dir, "agent", ringbuf.V4, 64)
	must.EventuallyTrue(t, "restart", func() bool { return one(t, h.next()).int("nixl.telemetry.ring.restarts") == 1 })
	push(t, w, ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 4096))
	must.EventuallyTrue(t, "usage of the new run", func() bool { return one(t, h.next()).int(usage) == 4096 })
}

// With NIXL_TELEMETRY_ENABLED_METRICS='agent_tx_*,agent_xfer_*', reads have no events
// for bytes and requests.
func TestFilteredEventsAreNotMissing(t *testing.T) {
	const writes, reads, torn = 334, 166, "nixl.telemetry.ring.torn_groups"
	dir := t.TempDir()
	w := ring(t, dir, "agent", ringbuf.V4, 4096)
	for i := range uint64(writes) {
		push(t, w, write(1000, 20+i, 10)...)
		if i < reads {
			push(t, w, write(0, 20+i, 11)[:2]...) // only its durations
		}
	}
	h := newHarness(t, dir).start()
	a := one(t, h.next())
	if got := a.int(transmitted); got != writes*1000 {
		t.Errorf("%d bytes transmitted, want %d", got, writes*1000)
	}
	if got, ok := a.points[torn]; got != int64(0) {
		t.Errorf("%v torn groups (%v), want 0", got, ok)
	}

	// The event for the bytes of a write is missing.
	lossy := write(1000, 20, 10)
	push(t, w, lossy[0], lossy[1], lossy[3])
	push(t, w, write(1000, 20, 10)...)
	if got := one(t, h.next()).int(torn); got != 1 {
		t.Errorf("%d torn groups, want 1", got)
	}
}
