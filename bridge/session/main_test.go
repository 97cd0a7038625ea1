// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

var update = flag.Bool("update", false, "update the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// epoch is the start time of the tests' sessions.
var epoch = time.Date(2025, 11, 17, 0, 4, 29, 802673600, time.UTC)

// ticking returns a clock that advances by step each time it is read.
func ticking(step time.Duration) func() time.Time {
	var mu sync.Mutex
	now := epoch.Add(-step)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(step)
		return now
	}
}

func withClock(now func() time.Time) Option {
	return func(c *config) { c.clock = now }
}

// openTest opens a session without metrics, whose clock advances by a millisecond for each
// packet. opts can replace these options.
func openTest(t testing.TB, dir string, opts ...Option) *Session {
	t.Helper()
	opts = append([]Option{
		WithMeterProvider(noop.NewMeterProvider()), withClock(ticking(time.Millisecond)), WithName("s"),
	}, opts...)
	s, err := Open(dir, opts...)
	must.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func recordAll(t testing.TB, s *Session, all ...Packet) {
	t.Helper()
	for _, p := range all {
		must.OK(t, s.Record(t.Context(), p))
	}
}

func read(t testing.TB, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	must.OK(t, err)
	return string(b)
}

func write(t testing.TB, path, content string) {
	t.Helper()
	must.OK(t, os.WriteFile(path, []byte(content), 0o600))
}

// rowsOf parses a CSV without incomplete rows.
func rowsOf(t testing.TB, content string) []Row {
	t.Helper()
	var rows []Row
	err := readRows(strings.NewReader(content), int64(len(content)), func(r *Row) { rows = append(rows, *r) },
		func(s SkippedRow) { t.Fatalf("a row is skipped: %+v", s) })
	must.OK(t, err)
	return rows
}

// golden compares got with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join(testdata, name)
	if *update {
		write(t, path, got)
	}
	if diff := cmp.Diff(read(t, path), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// upstream lists the real sessions.
var upstream = []string{"session_2025-11-17_00-04-29", "test_session"}

func upstreamPath(name string) string { return filepath.Join(testdata, "upstream", name) }

// packetOf returns the packet of a row.
func packetOf(r Row) Packet {
	p := Packet{
		ID: r.PacketID, Layer: r.Layer, Operation: r.Operation, Device: r.Device,
		Duration: r.Duration, Memory: int64(r.MemoryMB * bytesPerMB), End: r.Time,
	}
	if !r.Success {
		p.Err = textError(r.Error)
	}
	return p
}

// textError is an error with its own Go type.
type textError string

func (e textError) Error() string { return string(e) }

// testdata is an absolute path, because some tests change the directory.
var testdata, _ = filepath.Abs("testdata")

func equal(t testing.TB, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
