// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/recording"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// withFlightRecorder enables it.
func withFlightRecorder(dir string) func(*Config) {
	return func(c *Config) {
		c.FlightRecorder = defaultFlightRecorder()
		c.FlightRecorder.Directory = dir
	}
}

// recordings returns the recordings in a directory as text.
func recordings(t *testing.T, dir string) (list []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "nixl-*.jsonl.zst"))
	must.OK(t, err)
	for _, file := range files {
		compressed, err := os.ReadFile(file)
		must.OK(t, err)
		z, err := zstd.NewReader(nil)
		must.OK(t, err)
		text, err := z.DecodeAll(compressed, nil)
		must.OK(t, err)
		z.Close()
		list = append(list, string(text))
	}
	return list
}

// A logs pipeline isn't needed, and a shutdown doesn't wait for the events after the cause.
func TestProblemsAreRecorded(t *testing.T) {
	for name, c := range map[string]struct {
		events []ringbuf.Event
		cause  recording.CauseKind
		says   string
	}{
		"slow transfer": {write(64<<20, 2_100_000, 70), recording.SlowTransfer, "transmitting 67.1 MB took 2.1s"},
		"error":         {[]ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeErrBackend, 1)}, recording.Failure, "backend"},
		"full ring":     {make([]ringbuf.Event, 63), recording.FullRing, recording.WhyFull},
	} {
		t.Run(name, func(t *testing.T) {
			dir, to := t.TempDir(), filepath.Join(t.TempDir(), "recordings")
			w := ring(t, dir, "agent", ringbuf.V4, 64)
			push(t, ring(t, dir, "peer", ringbuf.V3, 64), write(7, 8, 9)...)
			h := newHarness(t, dir, withFlightRecorder(to))
			telemetry := h.withTelemetry()
			h.start()
			if got := sums(t, telemetry, "recordings"); len(got) != 3 || len(sums(t, telemetry, "recording_failures")) != 3 {
				t.Errorf("%v at the beginning", got)
			}
			push(t, w, c.events...)
			h.shutdown()
			list := recordings(t, to)
			if len(list) != 1 {
				t.Fatalf("%d recordings", len(list))
			}
			h.log("info: "+to, "recording written, because of "+c.cause.String())
			header, lines, _ := strings.Cut(list[0], "\n")
			for _, part := range []string{
				`"host":"` + testHost, `"cause":{"kind":"` + string(c.cause), `"agent":"agent"`, `"path":"` + filepath.Join(dir, "agent"), `"why":"` + c.says,
			} {
				if !strings.Contains(header, part) {
					t.Errorf("%s isn't in %s", part, header)
				}
			}
			for _, part := range []string{`"layout":"v4"`, `"layout":"v3"`, `"name":"peer"`, `"event_name":"agent_tx_bytes","value":7}`} {
				if !strings.Contains(lines, part) {
					t.Errorf("%s isn't in %s", part, lines)
				}
			}
			if got := strings.Contains(lines, `"state":"full"`); got != (c.cause == recording.FullRing) {
				t.Errorf("full: %v", got)
			}
		})
	}
}

func TestConditionsOfSlowTransfersAreThoseOfTheLog(t *testing.T) {
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "recordings")
	w := ring(t, dir, "agent", ringbuf.V4, 64)
	h := newHarness(t, dir, withFlightRecorder(to), func(c *Config) { c.Logs.SlowTransfer, c.Logs.Errors = 0, false }).start()
	push(t, w, write(64<<20, 2_100_000, 70)...)
	push(t, w, ringbuf.NewEvent(ringbuf.TypeErrBackend, 1))
	h.shutdown()
	if list := recordings(t, to); len(list) > 0 {
		t.Errorf("%q", list)
	}
}

func TestDirectoryOfRecordingsThatCantBeUsed(t *testing.T) {
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(to, nil, 0o600))
	w := ring(t, dir, "agent", ringbuf.V4, 64)
	h := newHarness(t, dir, withFlightRecorder(to))
	telemetry := h.withTelemetry()
	h.start()
	want := map[string]int64{"directory": 1, "size": 0, "write": 0}
	if d := cmp.Diff(want, sums(t, telemetry, "recording_failures")); d != "" {
		t.Error(d)
	}
	push(t, w, write(64<<20, 2_100_000, 70)...)
	if got := one(t, h.shutdown()).int("nixl.transfer.requests{nixl.transfer.direction=transmit}"); got != 1 {
		t.Errorf("%d transfers are reported", got)
	}
	h.log("error: "+to+": recordings of problems can't be written", to+" is not a directory")
}
