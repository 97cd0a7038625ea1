// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package store

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/storetest"
)

// A refused file has a reason and one notice, and doesn't affect other stores.
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
	for name, c := range map[string]struct {
		change func(b []byte) []byte
		reason string
		text   string
	}{
		"empty":              {func([]byte) []byte { return nil }, "invalid", "0 bytes, expected 6800"},
		"one byte too short": {func(b []byte) []byte { return b[:size-1] }, "invalid", "6799 bytes"},
		"one byte too long":  {func(b []byte) []byte { return append(b, 0) }, "invalid", "6801 bytes"},
		"no magic":           {func(b []byte) []byte { clear(b[:8]); return b }, "invalid", "doesn't begin with NIXLMPS1"},
		"other version":      {func(b []byte) []byte { le.PutUint32(b[atVersion:], 2); return b }, "version", "version 2 "},
		"other slots":        {func(b []byte) []byte { le.PutUint32(b[atSlots:], 22); return b }, "version", "22 event types"},
		"other process":      {func(b []byte) []byte { le.PutUint64(b[atPID:], 5); return b }, "invalid", "process 5"},
		"other instance":     {func(b []byte) []byte { le.PutUint64(b[atInstance:], 3); return b }, "invalid", "instance 3"},
		"too many bounds":    {func(b []byte) []byte { le.PutUint64(b[atBoundCount:], 33); return b }, "invalid", "33 bucket bounds"},
		"huge bounds":        {func(b []byte) []byte { le.PutUint64(b[atBoundCount:], math.MaxUint64); return b }, "invalid", "bucket bounds"},
		"NaN":                {func(b []byte) []byte { bounds(b, 1, math.NaN()); return b }, "invalid", "bound 2 is NaN"},
		"infinite":           {func(b []byte) []byte { bounds(b, 1, math.Inf(1)); return b }, "invalid", "bound 2 is +Inf"},
		"negative":           {func(b []byte) []byte { bounds(b, -1); return b }, "invalid", "bound 1"},
		"not increasing":     {func(b []byte) []byte { bounds(b, 2, 2); return b }, "invalid", "bound 2"},
		"agent without NUL":  {func(b []byte) []byte { fill(b[atAgent:atHost]); return b }, "invalid", "agent name isn't terminated"},
		"host without NUL":   {func(b []byte) []byte { fill(b[atHost:atRank]); return b }, "invalid", "host name isn't terminated"},
		"rank without NUL":   {func(b []byte) []byte { fill(b[atRank:atBounds]); return b }, "invalid", "local rank isn't terminated"},
		"no agent name":      {func(b []byte) []byte { b[atAgent] = 0; return b }, "invalid", "agent name is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newFixture(t)
			path := filepath.Join(x.dir, storetest.Real)
			if err := os.WriteFile(path, c.change(storetest.Bytes(t)), 0o600); err != nil {
				t.Fatal(err)
			}
			work(storetest.Create(t, x.dir, storetest.Config{}), 1)
			r := x.read()
			for range 2 {
				check(t, r.collect(), map[string]sums{"agent": transfers(1, drain.UpYes)})
			}
			wantRefusal(t, r.State(), path, c.reason)
			reported := r.noticesOf(notice.MPStoreRefused)
			if len(reported) != 1 || reported[0].Path != path || !strings.Contains(reported[0].String(), c.text) {
				t.Errorf("notices = %v, want one with %q", reported, c.text)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			r.collect()
			if s := r.State(); len(s.Refused) != 0 {
				t.Errorf("state = %+v", s)
			}
		})
	}
}

func wantRefusal(t *testing.T, s discover.State, path, reason string) {
	t.Helper()
	if len(s.Refused) != 1 || s.Refused[path].Reason != reason {
		t.Errorf("refused = %v, want %s with reason %s", s.Refused, path, reason)
	}
}

// Links and FIFOs aren't opened, and files with similar names are ignored.
func TestOnlyRegularFilesWithStoreNamesAreRead(t *testing.T) {
	x := newFixture(t)
	elsewhere := filepath.Join(t.TempDir(), storetest.Real)
	if err := os.WriteFile(elsewhere, storetest.Bytes(t), 0o600); err != nil {
		t.Fatal(err)
	}
	link, fifo := filepath.Join(x.dir, "nixl.1.1.1.mmap"), filepath.Join(x.dir, "nixl.2.2.2.mmap")
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(x.dir, "nixl.3.3.3.mmap"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nixl.1.2.mmap", "nixl.a.2.3.mmap", "nixl.1.2.3.mmap.staging", "nixl-owner.1:2.lock", "nixl.1.99999999999999999999.3.mmap"} {
		if err := os.WriteFile(filepath.Join(x.dir, name), storetest.Bytes(t), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := x.read()
	check(t, r.collect(), map[string]sums{})
	reasons := make(map[string]string)
	for path, refusal := range r.State().Refused {
		reasons[path] = refusal.Reason
	}
	if d := cmp.Diff(map[string]string{link: "invalid", fifo: "invalid"}, reasons); d != "" {
		t.Errorf("refused (-want +got)\n%s", d)
	}
}

// The values that were read before the truncation stay in the totals.
func TestTruncatedStoreKeepsItsTotals(t *testing.T) {
	x := newFixture(t)
	w := storetest.Create(t, x.dir, storetest.Config{})
	work(w, 3)
	r := x.read()
	r.collect()
	if err := os.Truncate(w.Path(), 1024); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		check(t, r.collect(), map[string]sums{"agent": transfers(3, drain.UpNo)})
	}
	wantRefusal(t, r.State(), w.Path(), "invalid")
	if reported := r.noticesOf(notice.MPStoreRefused); len(reported) != 1 {
		t.Errorf("notices = %v", reported)
	}
}

func TestStoresAreSelectedByOwnerAndAgentName(t *testing.T) {
	x := newFixture(t)
	for i, name := range []string{"decode-0", "decode-1", "prefill-0"} {
		work(storetest.Create(t, x.dir, storetest.Config{Agent: name, PID: int64(i + 1)}), 1)
	}
	r := x.read(func(c *Config) { c.Include, c.Exclude = []string{"decode-*"}, []string{"*-1"} })
	check(t, r.collect(), map[string]sums{"decode-0": transfers(1, drain.UpYes)})
	if s := r.State(); s.Open != 1 || len(s.Refused) != 0 {
		t.Errorf("state = %+v", s)
	}
	r = x.read(func(c *Config) { c.AllowedUIDs = []uint32{uint32(os.Getuid()) + 1} })
	check(t, r.collect(), map[string]sums{})
	for path, refusal := range r.State().Refused {
		if refusal.Reason != "owner" {
			t.Errorf("%s: %+v", path, refusal)
		}
	}
	if n := len(r.State().Refused); n != 3 {
		t.Errorf("%d stores are refused, want 3", n)
	}
}

// The limit applies to stores of running processes, and to exited agents that are still
// reported.
func TestStoreBeyondLimitIsRefusedUntilAnotherRetires(t *testing.T) {
	x := newFixture(t)
	first := storetest.Create(t, x.dir, storetest.Config{Agent: "first", PID: 1})
	r := x.read(func(c *Config) { c.Rings = discover.NewRings(1) })
	check(t, r.collect(), map[string]sums{"first": transfers(0, drain.UpYes)})
	second := storetest.Create(t, x.dir, storetest.Config{Agent: "second", PID: 2})
	r.collect()
	wantRefusal(t, r.State(), second.Path(), "limit")
	if reported := r.noticesOf(notice.MPStoreLimit); len(reported) != 1 {
		t.Errorf("notices = %v", reported)
	}
	first.Exit()
	check(t, r.collect(), map[string]sums{"first": transfers(0, drain.UpNo)})
	x.advance(staleAfter + 1)
	r.collect() // retires the agent "first"
	check(t, r.collect(), map[string]sums{"second": transfers(0, drain.UpYes)})
	if s := r.State(); s.Open != 1 || len(s.Refused) != 0 {
		t.Errorf("state = %+v", s)
	}
}
