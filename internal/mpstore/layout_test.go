// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package mpstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/storetest"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestInvalidStoresAreRefused(t *testing.T) {
	le := binary.LittleEndian
	bounds := func(b []byte, list ...float64) {
		le.PutUint64(b[atBoundCount:], uint64(len(list)))
		for i, v := range list {
			le.PutUint64(b[atBounds+8*i:], math.Float64bits(v))
		}
	}
	fill := func(b []byte) {
		for i := range b {
			b[i] = 'x'
		}
	}
	size := storetest.Size(21)
	for name, c := range map[string]struct {
		change func(b []byte) []byte
		want   error
		text   string
	}{
		"empty":              {func([]byte) []byte { return nil }, ErrInvalid, "doesn't begin with NIXLMPS1"},
		"only a header":      {func(b []byte) []byte { return b[:headerSize] }, ErrInvalid, "752 bytes, but 21 event types take 6800"},
		"one byte too short": {func(b []byte) []byte { return b[:size-1] }, ErrInvalid, "6799 bytes"},
		"one byte too long":  {func(b []byte) []byte { return append(b, 0) }, ErrInvalid, "6801 bytes"},
		"no magic":           {func(b []byte) []byte { clear(b[:8]); return b }, ErrInvalid, "doesn't begin with NIXLMPS1"},
		"other version":      {func(b []byte) []byte { le.PutUint32(b[atVersion:], 2); return b[:1000] }, ErrVersion, "version 2: "},
		"other slots":        {func(b []byte) []byte { le.PutUint32(b[atSlots:], 22); return b }, ErrInvalid, "22 event types take 7088"},
		"too many slots":     {func(b []byte) []byte { le.PutUint32(b[atSlots:], 65); return b }, ErrVersion, "65 event types"},
		"no slots":           {func(b []byte) []byte { le.PutUint32(b[atSlots:], 0); return b }, ErrVersion, "0 event types"},
		"other process":      {func(b []byte) []byte { le.PutUint64(b[atPID:], 5); return b }, ErrInvalid, "process 5"},
		"other instance":     {func(b []byte) []byte { le.PutUint64(b[atInstance:], 3); return b }, ErrInvalid, "instance 3"},
		"too many bounds":    {func(b []byte) []byte { le.PutUint64(b[atBoundCount:], 33); return b }, ErrInvalid, "33 bucket bounds"},
		"huge bounds":        {func(b []byte) []byte { le.PutUint64(b[atBoundCount:], math.MaxUint64); return b }, ErrInvalid, "bucket bounds"},
		"NaN":                {func(b []byte) []byte { bounds(b, 1, math.NaN()); return b }, ErrInvalid, "bound 2 is NaN"},
		"infinite":           {func(b []byte) []byte { bounds(b, 1, math.Inf(1)); return b }, ErrInvalid, "bound 2 is +Inf"},
		"negative":           {func(b []byte) []byte { bounds(b, -1); return b }, ErrInvalid, "bound 1"},
		"not increasing":     {func(b []byte) []byte { bounds(b, 2, 2); return b }, ErrInvalid, "bound 2"},
		"agent without NUL":  {func(b []byte) []byte { fill(b[atAgent:atHost]); return b }, ErrInvalid, "agent name isn't terminated"},
		"host without NUL":   {func(b []byte) []byte { fill(b[atHost:atRank]); return b }, ErrInvalid, "host name isn't terminated"},
		"rank without NUL":   {func(b []byte) []byte { fill(b[atRank:atBounds]); return b }, ErrInvalid, "local rank isn't terminated"},
		"no agent name":      {func(b []byte) []byte { b[atAgent] = 0; return b }, ErrInvalid, "agent name is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), storetest.Real)
			must.OK(t, os.WriteFile(path, c.change(storetest.Bytes(t)), 0o600))
			if _, err := read(path); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("error is %v, want %q", err, c.text)
			}
		})
	}
}

// Each new event type of NIXL adds a slot. Events of types that aren't in the catalog are
// reported by number.
func TestNumberOfSlotsComesFromTheHeader(t *testing.T) {
	for slots, want := range map[int]string{
		1: "5 bytes, 0 transfers", 20: "15 bytes, 1 transfers", 21: "15 bytes, 1 transfers",
		22:       "15 bytes, 1 transfers, unknown unknown_event_21 34, last 4",
		maxSlots: "15 bytes, 1 transfers, unknown unknown_event_63 34, last 4",
	} {
		w := storetest.Create(t, t.TempDir(), storetest.Config{Slots: slots})
		w.Count(storetest.TxBytes, 5)
		if slots > 7 {
			w.Transfer(0, 10, 20, 5)
		}
		if slots > 21 {
			w.Count(slots-1, 30)
			w.Count(slots-1, 4)
		}
		totals, err := read(w.Path())
		must.OK(t, err)
		got := fmt.Sprintf("%d bytes, %d transfers", totals.Size(tally.Transmit).Total().Int64(), totals.Duration().Count())
		for _, s := range totals.Series() {
			if got += fmt.Sprintf(", %s %s %d, last %d", s.Category(), s.Name, s.Sum.Int64(), s.Last()); !s.Valued {
				t.Errorf("%d slots: series %s has no values", slots, s.Name)
			}
		}
		if got != want {
			t.Errorf("%d slots: %s, want %s", slots, got, want)
		}
	}
}

// open opens a store.
func open(path string) (*Store, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return Open(file, filepath.Base(path), true)
}

// read returns the totals in a store.
func read(path string) (*tally.Totals, error) {
	s, err := open(path)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Read(false)
}

// A real agent wrote the store, and NIXL's own reader the JSON file.
func TestTotalsOfRealStoreEqualItsJSON(t *testing.T) {
	want := storetest.Read(t)
	totals, err := read(filepath.Join(storetest.Dir(t), storetest.Real))
	must.OK(t, err)
	counters := map[string]uint64{
		"agent_tx_bytes":                 totals.Size(tally.Transmit).Total().Lo,
		"agent_rx_bytes":                 totals.Size(tally.Receive).Total().Lo,
		"agent_tx_requests_num":          totals.Requests(tally.Transmit).Sum.Lo,
		"agent_rx_requests_num":          totals.Requests(tally.Receive).Sum.Lo,
		"agent_memory_registered":        totals.Registered().Sum.Lo,
		"agent_memory_deregistered":      totals.Deregistered().Sum.Lo,
		"agent_xfer_time":                totals.Duration().Total().Lo,
		"agent_xfer_post_time":           totals.PostDuration().Total().Lo,
		"agent_telemetry_events_dropped": totals.Dropped().Sum.Lo,
	}
	for kind := ringbuf.TypeErrNotPosted; kind.IsError(); kind++ {
		counters[strings.TrimPrefix(kind.String(), "agent_err_")] = totals.Errors(kind).Sum.Lo
	}
	last := map[string]uint64{
		"agent_tx_bytes":            uint64(totals.Size(tally.Transmit).LastInt64()),
		"agent_rx_bytes":            uint64(totals.Size(tally.Receive).LastInt64()),
		"agent_memory_registered":   uint64(totals.Registered().Last()),
		"agent_memory_deregistered": uint64(totals.Deregistered().Last()),
		"agent_xfer_time":           uint64(totals.Duration().LastInt64()),
		"agent_xfer_post_time":      uint64(totals.PostDuration().LastInt64()),
	}
	histograms := make(map[string]storetest.Buckets)
	for name, h := range map[string]*tally.Histogram{"agent_xfer_time": totals.Duration(), "agent_xfer_post_time": totals.PostDuration()} {
		histograms[name] = storetest.Buckets{Buckets: h.Counts(), Sum: h.Total().Lo}
		for i, bound := range want.Bounds {
			if got := h.Bounds()[i]; got != bound/1e6 {
				t.Errorf("%s: bound %v s is %v s", name, bound/1e6, got)
			}
		}
		if h.HasRange() {
			t.Errorf("%s has a minimum and a maximum, which stores don't contain", name)
		}
	}
	for _, d := range []string{cmp.Diff(want.Counters, counters), cmp.Diff(want.Gauges, last), cmp.Diff(want.Hist, histograms)} {
		if d != "" {
			t.Errorf("(-JSON +totals)\n%s", d)
		}
	}
}

func TestHistogramsHaveTheBoundsOfTheStore(t *testing.T) {
	most := make([]float64, maxBounds)
	for i := range most {
		most[i] = float64(i + 1)
	}
	for _, bounds := range [][]float64{{}, {15}, most} {
		w := storetest.Create(t, t.TempDir(), storetest.Config{Bounds: bounds})
		w.Transfer(0, 10, 20, 5)
		w.Transfer(0, 10, 1000, 5)
		totals, err := read(w.Path())
		must.OK(t, err)
		var want []uint64
		if len(bounds) > 0 {
			want = make([]uint64, len(bounds)+1)
			want[min(19, len(bounds))]++
			want[len(bounds)]++
		}
		if d := cmp.Diff(want, totals.Duration().Counts()); d != "" || totals.Duration().Count() != 2 || totals.Duration().Total().Lo != 1020 {
			t.Errorf("%d bounds: counts (-want +got)\n%s", len(bounds), d)
		}
	}
}

func TestReadingAStoreLeavesItUnchangedAndUnlocked(t *testing.T) {
	dir := t.TempDir()
	exit := storetest.Copy(t, dir)
	path := filepath.Join(dir, storetest.Real)
	before, err := os.Stat(path)
	must.OK(t, err)
	want, err := os.ReadFile(path)
	must.OK(t, err)
	for _, runs := range []bool{true, false} {
		s, err := open(path)
		must.OK(t, err)
		if running, err := s.Running(); running != runs || err != nil {
			t.Errorf("running is %v, %v, want %v", running, err, runs)
		}
		_, err = s.Read(false)
		must.OK(t, err)
		exit()
		process, err := os.OpenFile(path, os.O_RDWR, 0)
		must.OK(t, err)
		if err := syscall.Flock(int(process.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			t.Errorf("lock: %v", err)
		}
		must.OK(t, process.Close())
		must.OK(t, s.Close())
	}
	after, err := os.Stat(path)
	must.OK(t, err)
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, want) || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the store has changed (%v)", err)
	}
}

// The time of the start is in the name, that of the last update in the header.
func TestHeaderDescribesTheProcess(t *testing.T) {
	want := Header{
		Agent: "decode", PID: 7, Instance: 3, Host: "node", LocalRank: "5", Start: time.Unix(1_700_000_000, 5), Bounds: []float64{1, 2.5}, slots: 21,
	}
	w := storetest.Create(t, t.TempDir(), storetest.Config{
		Agent: want.Agent, PID: want.PID, Instance: want.Instance, Host: want.Host, Rank: want.LocalRank, Started: want.Start, Bounds: want.Bounds,
	})
	w.Updated(time.Second)
	s, err := open(w.Path())
	must.OK(t, err)
	if diff := cmp.Diff(want, s.Header, cmp.AllowUnexported(Header{})); diff != "" || s.Updated != time.Second {
		t.Errorf("updated %v, header (-want +got):\n%s", s.Updated, diff)
	}
	w.Updated(time.Hour)
	if _, err := s.Read(false); err != nil || s.Updated != time.Hour {
		t.Errorf("after a second read: updated %v, %v", s.Updated, err)
	}
	must.OK(t, os.Truncate(w.Path(), headerSize))
	if _, err := s.Read(false); !errors.Is(err, ErrInvalid) {
		t.Errorf("a truncated store: %v", err)
	}
	must.OK(t, s.Close())
	if _, err := Open(s.file, w.Name(), true); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a closed file: %v", err)
	}
}

func TestFilesOfNIXLAreRecognizedByTheirNames(t *testing.T) {
	for want, names := range map[[2]bool][]string{
		{true, false}: {"nixl.1.2.3.mmap", "nixl.9223372036854775807.2.18446744073709551615.mmap"},
		{false, true}: {"nixl-owner.0.0.0.0:9400.lock", "nixl-owner.[::]:9400.lock", "nixl.1.2.3.mmap.staging"},
		{}: {
			"agent", "agent.lock", "agent.staging", "nixl-owner", "nixl-owner.x", "nixl.1.2.mmap", "nixl.1.2.mmap.staging", "nixl.1.2.3.4.mmap",
			"x.1.2.3.mmap", "nixl.1.2.3.x", "nixl.a.2.3.mmap", "nixl.1.a.3.mmap", "nixl.1.2.a.mmap", "nixl.9223372036854775808.2.3.mmap", "nixl.1.-2.3.mmap",
		},
	} {
		for _, name := range names {
			if got := [2]bool{IsName(name), IsAuxiliary(name)}; got != want {
				t.Errorf("%s: store or auxiliary %v, want %v", name, got, want)
			}
			file, err := os.Create(filepath.Join(t.TempDir(), name))
			must.OK(t, err)
			if _, err := Open(file, name, true); !errors.Is(err, ErrInvalid) || strings.Contains(err.Error(), "nixl.PID.START.INSTANCE.mmap") == want[0] {
				t.Errorf("%s: error %v", name, err)
			}
			if err := file.Close(); !errors.Is(err, os.ErrClosed) {
				t.Errorf("%s: the refused file is open", name)
			}
		}
	}
}
