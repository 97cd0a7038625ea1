// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel/report"
	"github.com/nixl-otel/nixl-otel/internal/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWritePrintsTheSummaryAndEachKernel(t *testing.T) {
	synctest.Test(t, testWrite)
}

func testWrite(t *testing.T) {
	utilization := 0.25
	rt := ringkernel.NewRuntime(
		ringkernel.WithGPUUtilization(func() (float64, bool) { return utilization, utilization > 0 }))
	k := rt.Register("worker_0")
	for _, err := range []error{
		k.SetState(ringkernel.StateActive), rt.Register("worker_1").SetState(ringkernel.StateLaunched),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	for range 26 {
		k.Processed(t.Context(), 2*time.Millisecond)
	}
	k.Error(t.Context(), errors.New("no"))
	k.Dropped(t.Context(), ringkernel.InputQueue)
	time.Sleep(4 * time.Second) // synctest

	var b bytes.Buffer
	must.OK(t, report.Write(&b, rt.Summary()))
	const want = `=== Telemetry @ 946684804 ===
Kernels: 2
Messages: 26
Throughput: 6.5 msg/s
Errors: 1
Dropped: 1
GPU: 25.0%
  worker_0: active, 26 processed, 6.5 msg/s, latency 2ms avg, 2ms min, 2ms max, 1 errors
  worker_1: launched, 0 processed, 0.0 msg/s, latency 0s avg, 0s min, 0s max, 0 errors
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("written (-want +got):\n%s", d)
	}
	utilization = 0
	b.Reset()
	if err := report.Write(&b, rt.Summary()); err != nil || strings.Contains(b.String(), "GPU") {
		t.Errorf("without a GPU: %v\n%s", err, &b)
	}
}

func TestPrintWritesAtEachIntervalUntilCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := ringkernel.NewRuntime()
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		var at []time.Duration
		w := writerFunc(func(p []byte) (int, error) {
			if !bytes.HasPrefix(p, []byte("\n=== Telemetry @ ")) {
				t.Errorf("printed %q", p)
			}
			if at = append(at, time.Since(began)); len(at) == 3 {
				cancel()
			}
			return len(p), nil
		})
		if err := report.Print(ctx, w, rt, 5*time.Second); err != nil {
			t.Errorf("Print: %v, want nil when it is canceled", err)
		}
		want := []time.Duration{5 * time.Second, 10 * time.Second, 15 * time.Second}
		if d := cmp.Diff(want, at); d != "" {
			t.Errorf("printed at (-want +got):\n%s", d)
		}
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestPrintReturnsTheWriteError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errFull := errors.New("disk full")
		full := writerFunc(func([]byte) (int, error) { return 0, errFull })
		if err := report.Print(t.Context(), full, ringkernel.NewRuntime(), time.Second); !errors.Is(err, errFull) {
			t.Errorf("Print: %v, want the writer's error", err)
		}
		if err := report.Write(full, ringkernel.Summary{}); !errors.Is(err, errFull) {
			t.Errorf("Write: %v, want the writer's error", err)
		}
	})
}

func TestPrintRejectsAnIntervalThatIsNotPositive(t *testing.T) {
	for _, every := range []time.Duration{0, -time.Second} {
		err := report.Print(t.Context(), nil, nil, every)
		if err == nil || !strings.Contains(err.Error(), every.String()) {
			t.Errorf("interval %v: %v, want an error that contains it", every, err)
		}
	}
}

func TestPrintOfANilRuntimeWaitsForTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var b bytes.Buffer
		if err := report.Print(ctx, &b, nil, time.Second); err != nil || b.Len() > 0 {
			t.Errorf("%v, printed %q", err, &b)
		}
	})
}

// This example prints a summary every five seconds until the context is canceled.
func ExamplePrint() {
	rt := ringkernel.NewRuntime()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- report.Print(ctx, os.Stdout, rt, 5*time.Second) }()
	cancel() // at the end of the program
	fmt.Println(<-done)
	// Output: <nil>
}

func ExampleWrite() {
	var rt *ringkernel.Runtime // nil turns telemetry off
	if err := report.Write(os.Stdout, rt.Summary()); err != nil {
		log.Fatal(err)
	}
	// Output: === Telemetry is disabled ===
}
