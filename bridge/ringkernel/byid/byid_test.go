// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package byid_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel/byid"
	"github.com/nixl-otel/nixl-otel/internal/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type call func(ctx context.Context, rt *ringkernel.Runtime, id string) error

var errBad = errors.New("bad message")

// calls lists all functions with the corresponding methods.
var calls = map[string]struct {
	byID   call
	direct func(context.Context, *ringkernel.Kernel)
}{
	"RecordReceive": {byid.RecordReceive, func(ctx context.Context, k *ringkernel.Kernel) { k.Received(ctx) }},
	"RecordSend":    {byid.RecordSend, func(ctx context.Context, k *ringkernel.Kernel) { k.Sent(ctx) }},
	"RecordMessage": {
		func(ctx context.Context, rt *ringkernel.Runtime, id string) error {
			return byid.RecordMessage(ctx, rt, id, 7)
		},
		func(ctx context.Context, k *ringkernel.Kernel) { k.Processed(ctx, 7) },
	},
	"RecordDrop": {
		func(ctx context.Context, rt *ringkernel.Runtime, id string) error {
			return byid.RecordDrop(ctx, rt, id, ringkernel.OutputQueue)
		},
		func(ctx context.Context, k *ringkernel.Kernel) { k.Dropped(ctx, ringkernel.OutputQueue) },
	},
	"RecordError": {
		func(ctx context.Context, rt *ringkernel.Runtime, id string) error {
			return byid.RecordError(ctx, rt, id, errBad)
		},
		func(ctx context.Context, k *ringkernel.Kernel) { k.Error(ctx, errBad) },
	},
}

func TestRecordsTheSameAsTheKernelMethod(t *testing.T) {
	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := ringkernel.NewRuntime()
				c.direct(t.Context(), rt.Register("direct"))
				rt.Register("id")
				must.OK(t, c.byID(t.Context(), rt, "id"))
				want, _ := rt.Telemetry("direct")
				got, _ := rt.Telemetry("id")
				want.KernelID = "id"
				if d := cmp.Diff(want, got, cmpopts.EquateErrors()); d != "" {
					t.Errorf("Telemetry (-by method +by ID):\n%s", d)
				}
				untouched := ringkernel.Telemetry{KernelID: "id", StartTime: got.StartTime, Time: got.Time}
				if cmp.Equal(untouched, got, cmpopts.EquateErrors()) {
					t.Error("nothing was recorded")
				}
			})
		})
	}
}

func TestUnknownIDIsAnError(t *testing.T) {
	rt := ringkernel.NewRuntime()
	rt.Register("gone")
	rt.Unregister("gone")
	for name, c := range calls {
		err := c.byID(t.Context(), rt, "gone")
		if !errors.Is(err, byid.ErrNotRegistered) || !strings.Contains(err.Error(), `"gone"`) {
			t.Errorf("%s: %v, want ErrNotRegistered and the ID", name, err)
		}
	}
	if n := rt.Summary().KernelCount; n != 0 {
		t.Errorf("%d kernels were registered", n)
	}
}

func TestNilRuntimeDoesNothing(t *testing.T) {
	for name, c := range calls {
		if err := c.byID(t.Context(), nil, "k"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDoesNotAllocate(t *testing.T) {
	rt := ringkernel.NewRuntime()
	rt.Register("k")
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { _ = byid.RecordReceive(ctx, rt, "k") }); n != 0 {
		t.Errorf("%v allocations per call, want 0", n)
	}
}

func Example() {
	ctx := context.Background()
	rt := ringkernel.NewRuntime()
	rt.Register("worker")
	fmt.Println(byid.RecordReceive(ctx, rt, "worker"))
	err := byid.RecordReceive(ctx, rt, "wroker")
	fmt.Println(err, errors.Is(err, byid.ErrNotRegistered))
	// Output:
	// <nil>
	// record for "wroker": no ring kernel has this ID; register it first true
}
