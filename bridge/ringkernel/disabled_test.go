// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

func TestNilRuntimeDoesNothing(t *testing.T) {
	var rt *ringkernel.Runtime
	reader := newReader(rt)
	k := rt.Register("k")
	if k != nil || k.ID() != "" || rt.Kernel("k") != nil {
		t.Errorf("Register returned kernel %q", k.ID())
	}
	k.Received(t.Context())
	k.Sent(t.Context())
	k.Processed(t.Context(), time.Millisecond)
	k.Dropped(t.Context(), ringkernel.InputQueue)
	k.Error(t.Context(), errors.New("no"))
	k.SetQueueSize(ringkernel.InputQueue, 1)
	k.SetQueueCapacity(ringkernel.InputQueue, 1)
	k.ObserveQueue(ringkernel.OutputQueue, func() (int, int) { return 1, 1 })
	setState(t, k, ringkernel.StateTerminated)
	setState(t, k, ringkernel.StateCreated)
	rt.Reset()
	rt.Reset("k")
	rt.Unregister("k")
	if _, ok := rt.Telemetry("k"); ok {
		t.Error("a nil Runtime has telemetry")
	}
	if d := cmp.Diff(ringkernel.Summary{}, rt.Summary()); d != "" {
		t.Errorf("Summary() isn't zero:\n%s", d)
	}
	if v := metrictest.Values(collect(t, reader)); len(v) != 0 {
		t.Errorf("reported %v, want nothing", v)
	}
}

func TestNilKernelDoesNotAllocate(t *testing.T) {
	var k *ringkernel.Kernel
	ctx, err := t.Context(), errors.New("no")
	if n := testing.AllocsPerRun(100, func() {
		k.Received(ctx)
		k.Processed(ctx, 1)
		k.Dropped(ctx, ringkernel.InputQueue)
		k.Error(ctx, err)
	}); n != 0 {
		t.Errorf("%v allocations per call, want 0", n)
	}
}
