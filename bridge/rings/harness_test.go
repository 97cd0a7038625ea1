// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rings

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is when the clock of the tests starts.
var start = time.Date(2025, time.January, 15, 14, 30, 25, 0, time.UTC)

// world is a started Producer, its log, and how far its clock is ahead.
type world struct {
	*Producer
	log   *lines
	ahead atomic.Int64
}

func newWorld(t *testing.T, c Config) *world {
	t.Helper()
	w, began := &world{log: new(lines)}, time.Now()
	c.Logger = slog.New(slog.NewTextHandler(w.log, nil))
	if c.clock == nil {
		c.clock = func() time.Time { return start.Add(time.Since(began) + time.Duration(w.ahead.Load())) }
	}
	c.RunInterval = 2 * time.Millisecond
	p, err := Open(c)
	must.OK(t, err)
	w.Producer = p
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return w
}

// produce returns the values of the Producer's series by name and attributes:
// `name{key=value,…}`.
func (w *world) produce(t *testing.T) map[string]float64 {
	t.Helper()
	return metrictest.Values(w.metrics(t))
}

func (w *world) metrics(t *testing.T) []metricdata.Metrics {
	t.Helper()
	reader := sdkmetric.NewManualReader(sdkmetric.WithProducer(w.Producer))
	sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	return metrictest.Collect(t, reader)
}

// lines is a log that tests can wait on.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// wait waits until the log contains all parts.
func (l *lines) wait(t *testing.T, parts ...string) {
	t.Helper()
	must.Eventually(t, func() string {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, p := range parts {
			if !strings.Contains(l.text.String(), p) {
				return fmt.Sprintf("%q is missing in the log:\n%s", p, &l.text)
			}
		}
		return ""
	})
}

// makeRing creates the ring of agent a. It stays open until the test ends.
func makeRing(t *testing.T, dir string, events ...ringbuf.Event) *ringbuf.Writer {
	t.Helper()
	w, err := ringbuf.Create(filepath.Join(dir, "a"), ringbuf.V4, 64)
	must.OK(t, err)
	t.Cleanup(func() { _ = w.Close() })
	push(t, w, events...)
	return w
}

func push(t *testing.T, ring *ringbuf.Writer, events ...ringbuf.Event) {
	t.Helper()
	if n, err := ring.PushBatch(events); n < len(events) {
		t.Fatalf("only %d events fit: %v", n, err)
	}
}

// keep returns a sink that appends events to a list, which a test may read after a collection.
func keep(list *[]sink.Event) sink.Sink {
	return sink.Func(func(events []sink.Event) error { *list = append(*list, events...); return nil })
}
