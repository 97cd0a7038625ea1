package ringkernel_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

func TestMonitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t, ringkernel.WithMeterProvider(sdkmetric.NewMeterProvider()))
		k := rt.Register("k")
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		var got []ringkernel.Summary
		err := rt.Monitor(ctx, 5*time.Second, func(s ringkernel.Summary) error {
			k.Processed(time.Millisecond) // counts for the next summary
			got = append(got, s)
			if len(got) == 3 {
				cancel()
			}
			return nil
		})
		if err != nil {
			t.Errorf("Monitor: %v, want nil when it is cancelled", err)
		}
		if len(got) != 3 {
			t.Fatalf("%d summaries, want 3", len(got))
		}
		for i, s := range got {
			if at := s.Time.Sub(began); at != time.Duration(i+1)*5*time.Second {
				t.Errorf("summary %d came after %v", i, at)
			}
			if s.TotalMessages != int64(i) {
				t.Errorf("summary %d has %d messages, want %d", i, s.TotalMessages, i)
			}
		}
	})
}

func TestMonitorEndsWithAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t, ringkernel.WithMeterProvider(sdkmetric.NewMeterProvider()))
		errFull := errors.New("disk full")
		err := rt.Monitor(t.Context(), time.Second, ringkernel.PrintTo(writerFunc(func([]byte) (int, error) {
			return 0, errFull
		})))
		if !errors.Is(err, errFull) {
			t.Errorf("Monitor: %v, want the writer's error", err)
		}
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestMonitorRefusesAnInterval(t *testing.T) {
	rt := newRuntime(t, ringkernel.WithEnabled(false))
	for _, every := range []time.Duration{0, -time.Second} {
		if err := rt.Monitor(t.Context(), every, nil); err == nil || !strings.Contains(err.Error(), every.String()) {
			t.Errorf("Monitor every %v: %v, want an error that says so", every, err)
		}
	}
}

func TestMonitorDisabled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t, ringkernel.WithEnabled(false))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := rt.Monitor(ctx, time.Second, func(ringkernel.Summary) error {
			t.Error("a disabled Runtime has a summary")
			return nil
		})
		if err != nil {
			t.Errorf("Monitor: %v", err)
		}
	})
}

func TestPrintTo(t *testing.T) {
	w := newWorld(t)
	k := w.Register("worker_0")
	w.Register("worker_1").SetState(ringkernel.StateLaunched)
	k.SetState(ringkernel.StateActive)
	for range 25 {
		k.Processed(2 * time.Millisecond)
	}
	k.Processed(15 * time.Millisecond)
	k.Error(errors.New("no"))
	k.Dropped()
	w.clock.Advance(4 * time.Second)

	var b bytes.Buffer
	if err := ringkernel.PrintTo(&b)(w.Summary()); err != nil {
		t.Fatal(err)
	}
	const want = `
=== Telemetry @ 1736951429 ===
Kernels: 2
Messages: 26
Throughput: 6.5 msg/s
Errors: 1
Dropped: 1
  worker_0: active, 26 processed, 6.5 msg/s, latency 2.5ms avg, 15ms max, 1 errors
  worker_1: launched, 0 processed, 0.0 msg/s, latency 0s avg, 0s max, 0 errors
`
	if got := b.String(); got != want {
		t.Errorf("printed:\n%s\nwant:\n%s", got, want)
	}
}
