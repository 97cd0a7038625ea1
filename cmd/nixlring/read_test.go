// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
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

var categories = []string{"MEMORY", "TRANSFER", "CONNECTION", "BACKEND", "ERROR", "PERFORMANCE", "SYSTEM", "CUSTOM"}

// categoryOf returns the expected category of a fixture's event: the one in the ring, or that
// of its type if the ring has none.
func categoryOf(e ringtest.Event) (string, int) {
	n := -1
	switch {
	case e.Category != nil:
		n = int(*e.Category)
	case e.Type == nil:
	case *e.Type <= 3:
		n = 1
	case *e.Type <= 5:
		n = 0
	case *e.Type <= 7:
		n = 5
	case *e.Type <= 19:
		n = 4
	case *e.Type == 20:
		n = 6
	}
	if n < 0 || n >= len(categories) {
		return "UNKNOWN", n
	}
	return categories[n], n
}

// nameOf returns the expected name. As in NIXL's Python reader, the names of unknown types
// contain the type.
func nameOf(e ringtest.Event) string {
	if e.Name == "unknown_event" && e.Type != nil {
		return fmt.Sprintf("unknown_event_%d", *e.Type)
	}
	return e.Name
}

func readable(t *testing.T) (cases []ringtest.Case) {
	t.Helper()
	for _, c := range ringtest.Cases(t) {
		if c.Readable() {
			cases = append(cases, c)
		}
	}
	return cases
}

// TestReadPrintsABlockForEachEvent compares the output for rings that NIXL wrote with the JSON
// files of these rings.
func TestReadPrintsABlockForEachEvent(t *testing.T) {
	reading := time.Date(2025, 1, 15, 14, 30, 25, 123_456_000, time.Local)
	for _, c := range readable(t) {
		t.Run(c.Name, func(t *testing.T) {
			var want strings.Builder
			for _, e := range c.Pending {
				at := reading
				if c.Version == 1 {
					at = time.UnixMicro(int64(e.TimestampMicros))
				}
				category, _ := categoryOf(e)
				fmt.Fprintf(&want, "=== NIXL Telemetry Event ===\nTimestamp: %s\nCategory: %s\nEvent: %s\nValue: %d\n===========================\n\n",
					at.Format("2006-01-02 15:04:05.000000"), category, nameOf(e), e.Value)
			}
			before, err := os.ReadFile(c.File)
			must.OK(t, err)
			r := nixlringAt(t.Context(), reading, "read", c.File) // only observes, so there is no need to copy the fixture
			if r.code != exitOK {
				t.Fatalf("exit code %d: %s", r.code, r.err)
			}
			if diff := cmp.Diff(want.String(), r.out); diff != "" {
				t.Error(diff)
			}
			after, err := os.ReadFile(c.File)
			must.OK(t, err)
			if string(before) != string(after) {
				t.Error("the ring was changed")
			}
			notes := fmt.Sprintf("capacity %d events", c.Capacity)
			if !strings.Contains(r.err, c.File) || !strings.Contains(r.err, notes) ||
				(c.Version == 1) == strings.Contains(r.err, "have no timestamps") ||
				!strings.Contains(r.err, fmt.Sprintf("Total events read: %d\nLeft in the ring: %[1]d events\n", len(c.Pending))) {
				t.Errorf("notes:\n%s", r.err)
			}
		})
	}
}

func TestReadPrintsTheExampleOfNIXLsGuide(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent_name")
	w, err := ringbuf.Create(path, ringbuf.V1, 8)
	must.OK(t, err)
	at := func(micros int) uint64 {
		return uint64(time.Date(2025, 1, 15, 14, 30, 25, micros*1000, time.Local).UnixMicro())
	}
	for i, e := range []ringbuf.Event{ringbuf.NewEvent(ringbuf.TypeTxBytes, 1<<20), ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, 4096)} {
		e.TimestampMicros = at(123456 + i*1111)
		must.OK(t, w.Push(e))
	}
	must.OK(t, w.Close())
	golden(t, "read_guide.txt", nixlring(t.Context(), nil, "read", path).out)
}

func TestReadPrintsCSV(t *testing.T) {
	reading := time.UnixMicro(1_736_951_425_123_456)
	for _, c := range readable(t) {
		r := nixlringAt(t.Context(), reading, "read", c.File, "--output", "csv", "--quiet")
		got, err := csv.NewReader(strings.NewReader(r.out)).ReadAll()
		if r.code != exitOK || r.err != "" || err != nil {
			t.Fatalf("%s: %v, %+v", c.Name, err, r)
		}
		want := [][]string{{"timestamp_us", "category", "event_name", "value"}}
		for _, e := range c.Pending {
			micros := uint64(reading.UnixMicro())
			if c.Version == 1 {
				micros = e.TimestampMicros
			}
			_, category := categoryOf(e)
			want = append(want, []string{fmt.Sprint(micros), fmt.Sprint(category), nameOf(e), fmt.Sprint(e.Value)})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", c.Name, diff)
		}
	}
}

func TestReadPrintsJSONWithTheRingOfEachEvent(t *testing.T) {
	dir := rings(t)
	one, two := filepath.Join(dir, "decode"), filepath.Join(dir, "pre\nfill")
	r := nixlring(t.Context(), nil, "read", one, two, "-o", "json", "--count", "8")
	if r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	from := map[any]int{}
	for line := range strings.Lines(r.out) {
		var e map[string]any
		must.OK(t, json.Unmarshal([]byte(line), &e))
		from[e["ring"]]++
		if e["category"] != "error" || e["value"] != 1.0 || e["timestamp_us"] == nil || (e["time_of_reading"] == true) != (e["ring"] == two) {
			t.Errorf("%s", line)
		}
	}
	if diff := cmp.Diff(map[any]int{one: 6, two: 2}, from); diff != "" {
		t.Error(diff)
	}
	r = nixlring(t.Context(), nil, "read", one, two, "--name", "agent_err_*")
	if !strings.HasPrefix(r.out, "==> ") || strings.Count(r.out, "==> ") != 1 || strings.Count(r.out, "Event: agent_err_backend\n") != 6 {
		t.Errorf("text: %s", r.out)
	}
}

func TestReadPrintsALineForEachEvent(t *testing.T) {
	dir := rings(t)
	one, two := filepath.Join(dir, "decode"), filepath.Join(dir, "pre\nfill")
	r := nixlring(t.Context(), nil, "read", one, "-o", "line")
	if r.code != exitOK || strings.Count(r.out, "\n") != 6 || strings.Count(r.out, "  error        NIXL_ERR_BACKEND ") != 6 || strings.Contains(r.out, dir) {
		t.Errorf("%+v", r)
	}
	r = nixlring(t.Context(), nil, "read", one, two, "-o", "line")
	if r.code != exitOK || strings.Count(r.out, "\n") != 12 || strings.Count(r.out, "  "+one+"\n") != 6 {
		t.Errorf("%+v", r)
	}
}

func TestReadFiltersByCategoryAndName(t *testing.T) {
	file := ringtest.Find(t, "real-agent/v1.4.0_posix_200xfer").File
	all := nixlring(t.Context(), nil, "read", file).out
	for _, tt := range []struct {
		want string // in each block
		args []string
	}{
		{"Category: MEMORY", []string{"--category", "memory"}},
		{"Event: agent_xfer_time", []string{"--name", "agent_xfer_t*"}},
		{"Event: agent_rx_bytes", []string{"--name", "agent_?x_bytes", "--category", "Transfer,error", "--name", "agent_rx*", "--name", "agent_rx_bytes"}},
	} {
		r := nixlring(t.Context(), nil, append([]string{"read", file}, tt.args...)...)
		if blocks := strings.Count(r.out, "=== NIXL"); r.code != exitOK || blocks == 0 || blocks == strings.Count(all, "=== NIXL") {
			t.Errorf("%v: %d events, %+v", tt.args, blocks, r.err)
		}
		if tt.want != "Event: agent_rx_bytes" && strings.Count(r.out, tt.want+"\n") != strings.Count(all, tt.want+"\n") {
			t.Errorf("%v: number of blocks with %q differs from the unfiltered output", tt.args, tt.want)
		}
	}
}

func TestReadConsumesOnlyWithConsumeFlag(t *testing.T) {
	c := ringtest.Find(t, "v1.4.0/mixed_cap16")
	path := ringtest.Copy(t, c)
	n := len(c.Pending)
	for _, tt := range []struct {
		args        []string
		blocks, now int
	}{
		{nil, n, n}, // observes
		{[]string{"--consume", "--count", "2"}, 2, n - 2},
		{[]string{"--consume", "--name", "nothing"}, 0, 0},
		{nil, 0, 0},
	} {
		r := nixlring(t.Context(), nil, append([]string{"read", path}, tt.args...)...)
		if r.code != exitOK || strings.Count(r.out, "=== NIXL") != tt.blocks || !strings.Contains(r.err, fmt.Sprintf("Left in the ring: %d events\n", tt.now)) {
			t.Errorf("%v: %+v", tt.args, r)
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
		for _, want := range []string{"agent restarted", "layout v4", "layout v1, capacity 16", "Total events read: 27\nLeft in the ring: 0 events\n"} {
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

func TestReadContinuesPastRingsItCannotRead(t *testing.T) {
	dir := rings(t)
	newer := ringtest.Make(t, filepath.Join(dir, "newer"), ringtest.NewHeader(7, 8), 8*16)
	for path, want := range map[string]string{
		filepath.Join(dir, "missing"): "no such file",
		filepath.Join(dir, "letter"):  "not a NIXL telemetry ring",
		filepath.Join(dir, "failed"):  "not ready",
		newer:                         "unknown ring version 7",
		dir:                           "is a directory",
	} {
		good := filepath.Join(dir, "decode")
		r := nixlring(t.Context(), nil, "read", path, good)
		if r.code != exitError || strings.Count(r.out, "\nValue: 1\n") != 6 || !strings.Contains(r.out, "==> "+good+" <==") ||
			!strings.Contains(r.err, want) || !strings.Contains(r.err, path) {
			t.Errorf("%s: %+v", path, r)
		}
		quiet := nixlring(t.Context(), nil, "read", "--quiet", path, good, path, "-o", "json")
		if quiet.code != exitError || strings.Count(quiet.out, "\n") != 6 || strings.Count(quiet.err, "\n") != 3 ||
			strings.Count(quiet.err, "nixlring: ") != 3 || !strings.HasSuffix(quiet.err, "nixlring: 2 of 3 rings can't be read\n") {
			t.Errorf("%s, quiet: %+v", path, quiet)
		}
		if r := nixlring(t.Context(), nil, "read", "-q", path, path); r.code != exitError || r.out != "" || strings.Count(r.err, want) != 2 {
			t.Errorf("%s alone: %+v", path, r)
		}
	}
	if _, err := os.Stat(newer); err != nil {
		t.Errorf("ring of an unknown version: %v", err)
	}
}

func TestReadRefusesASecondConsumer(t *testing.T) {
	dir := rings(t)
	path := filepath.Join(dir, "decode")
	r, err := ringbuf.OpenReader(path, ringbuf.Consume)
	must.OK(t, err)
	defer r.Close()
	got := nixlring(t.Context(), nil, "read", "--consume", path)
	if got.code != exitError || got.out != "" || !strings.Contains(got.err, "is already being consumed") {
		t.Errorf("%+v", got)
	}
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
