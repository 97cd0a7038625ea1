// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// expected returns what read prints of an event that NIXL wrote, as blocks of text and as a row of CSV. The
// category is the one in the ring, or that of the type if the ring has none. As in NIXL's Python reader, the
// names of unknown types contain the type.
func expected(e ringtest.Event, layout int32, reading time.Time) (block, row string) {
	categories := []string{"MEMORY", "TRANSFER", "CONNECTION", "BACKEND", "ERROR", "PERFORMANCE", "SYSTEM", "CUSTOM"}
	number, category, name, at := -1, "UNKNOWN", e.Name, reading
	if e.Category != nil {
		number = int(*e.Category)
	} else if e.Type != nil {
		number = int(ringbuf.Type(*e.Type).Category())
	}
	if number >= 0 && number < len(categories) {
		category = categories[number]
	}
	if e.Type != nil && name == "unknown_event" {
		name = fmt.Sprintf("unknown_event_%d", *e.Type)
	}
	if layout == 1 {
		at = time.UnixMicro(int64(e.TimestampMicros))
	}
	block = fmt.Sprintf("=== NIXL Telemetry Event ===\nTimestamp: %s\nCategory: %s\nEvent: %s\nValue: %d\n===========================\n\n",
		at.Format("2006-01-02 15:04:05.000000"), category, name, e.Value)
	if strings.Contains(name, `"`) {
		name = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	}
	return block, fmt.Sprintf("%d,%d,%s,%d\n", at.UnixMicro(), number, name, e.Value)
}

// TestReadPrintsTheEventsThatNIXLWrote compares the output with the JSON files of the rings.
func TestReadPrintsTheEventsThatNIXLWrote(t *testing.T) {
	reading := time.Date(2025, 1, 15, 14, 30, 25, 123_456_000, time.Local)
	for _, c := range ringtest.Cases(t) {
		if !c.Readable() {
			continue
		}
		want := map[string]string{"text": "", "csv": "timestamp_us,category,event_name,value\n"}
		for _, e := range c.Pending {
			block, row := expected(e, c.Version, reading)
			want["text"] += block
			want["csv"] += row
		}
		before := readFile(t, c.File)
		for format, events := range want {
			// It only observes, so there is no need to copy the fixture.
			r := nixlringAt(t.Context(), reading, "read", c.File, "--output", format)
			if diff := cmp.Diff(events, r.out); diff != "" || r.code != exitOK {
				t.Errorf("%s: exit code %d: %s", c.Name, r.code, diff)
			}
		}
		if !bytes.Equal(before, readFile(t, c.File)) {
			t.Errorf("%s was changed", c.Name)
		}
	}
}

// A signal cancels the context of the command.
func TestReadFollowsUntilASignal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent")
	synctest.Test(t, func(t *testing.T) {
		w, err := ringbuf.Create(path, ringbuf.V4, 8)
		must.OK(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan result)
		go func() {
			done <- nixlring(ctx, nil, "read", "--follow", "--consume", "--telemetry_path", path+"-none")
		}()
		if r := <-done; r.code != exitError || !strings.Contains(r.err, path+"-none") || r.out != "" {
			t.Errorf("missing ring: %+v", r)
		}
		go func() { done <- nixlring(ctx, nil, "read", "--follow", "--consume", "--telemetry_path", path) }()
		for i := range 20 { // more than the capacity
			must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, uint64(i))))
			time.Sleep(60 * time.Millisecond) // synctest
		}
		must.OK(t, w.Close())
		w, err = ringbuf.Create(path, ringbuf.V1, 16) // the agent restarts
		must.OK(t, err)
		for i := range 7 {
			must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeRxBytes, uint64(i))))
			time.Sleep(60 * time.Millisecond) // synctest
		}
		cancel()
		r := <-done
		must.OK(t, w.Close())
		if r.code != exitOK || strings.Count(r.out, "agent_tx_bytes") != 20 || strings.Count(r.out, "agent_rx_bytes") != 7 {
			t.Errorf("%+v", r)
		}
		for _, want := range []string{"agent restarted", "layout v4", "layout v1, capacity 16", "Total events read: 27\nLeft in the rings: 0 events\n"} {
			if !strings.Contains(r.err, want) {
				t.Errorf("missing %q in\n%s", want, r.err)
			}
		}
	})
}

func TestReadFollowsAPathWhoseFileIsRemovedReplacedAndTruncated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent")
	synctest.Test(t, func(t *testing.T) {
		create := func() *ringbuf.Writer {
			w, err := ringbuf.Create(path, ringbuf.V4, 8)
			must.OK(t, err)
			t.Cleanup(func() { must.OK(t, w.Close()) })
			return w
		}
		push := func(w *ringbuf.Writer, values ...uint64) {
			for _, v := range values {
				must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, v)))
			}
		}
		w := create()
		push(w, 1, 2)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan result)
		go func() { done <- nixlring(ctx, nil, "read", "--follow", "--consume", "--output", "csv", path) }()
		polled := func() { time.Sleep(60 * time.Millisecond) } // synctest
		polled()
		ringtest.Edit(t, path, func(h *ringtest.Header) { h.ReadPos = 1 }) // another consumer
		polled()
		must.OK(t, os.Remove(path)) // the agent continues to write
		polled()
		push(w, 3)
		polled()
		push(w, 4)
		other := create() // another agent takes the name
		push(other, 5)
		polled()
		must.OK(t, os.Truncate(path, 100))
		polled()
		cancel()
		r := <-done
		var values []string
		for line := range strings.Lines(r.out) {
			values = append(values, strings.TrimSpace(line[strings.LastIndex(line, ",")+1:]))
		}
		if diff := cmp.Diff([]string{"value", "1", "2", "3", "4", "5"}, values); diff != "" {
			t.Error(diff)
		}
		for _, want := range []string{"another process consumed events", path + ": the file was replaced", path + ": ring file was truncated"} {
			if strings.Count(r.err, want) != 1 {
				t.Errorf("%q is not there once:\n%s", want, r.err)
			}
		}
		if strings.Contains(r.err, "no such file") { // the ring is still readable
			t.Error(r.err)
		}
	})
}

func TestReadPrintsNoMoreThanCountAcrossReplacedFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent")
	synctest.Test(t, func(t *testing.T) {
		w, err := ringbuf.Create(path, ringbuf.V4, 8)
		must.OK(t, err)
		defer w.Close()
		done := make(chan result)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() { done <- nixlring(ctx, nil, "read", "--follow", "--count", "2", "--output", "json", path) }()
		synctest.Wait()
		must.OK(t, os.Remove(path))
		for range 5 {
			must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, 1)))
		}
		other, err := ringbuf.Create(path, ringbuf.V4, 8)
		must.OK(t, err)
		defer other.Close()
		if r := <-done; strings.Count(r.out, "\n") != 2 {
			t.Errorf("%+v", r)
		}
	})
}

// broken is an output that returns errors.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestReadDoesNotCommitEventsThatItCouldNotWrite(t *testing.T) {
	path := ringtest.Copy(t, ringtest.Find(t, "v1.4.0/mixed_cap16"))
	before := ringtest.ReadHeader(t, path)
	var errs strings.Builder
	if code := run(t.Context(), world{out: broken{}, err: &errs, now: time.Now}, []string{"read", "--consume", path}); code != exitError {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	if diff := cmp.Diff(before, ringtest.ReadHeader(t, path)); diff != "" {
		t.Errorf("events were committed: %s", diff)
	}
}
