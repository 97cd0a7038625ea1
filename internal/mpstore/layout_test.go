// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package mpstore

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/storetest"
	"github.com/nixl-otel/nixl-otel/internal/tally"
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
	for _, slots := range []int{1, 20, 21, 22, maxSlots} {
		w := storetest.Create(t, t.TempDir(), storetest.Config{Slots: slots})
		w.Count(storetest.TxBytes, 5)
		want := map[string]int64{}
		if slots > 7 {
			w.Transfer(0, 10, 20, 5)
		}
		if slots > 21 {
			w.Count(slots-1, 30)
			w.Count(slots-1, 4)
			want[map[int]string{22: "unknown_event_21", maxSlots: "unknown_event_63"}[slots]] = 34
		}
		totals, err := read(w.Path())
		must.OK(t, err)
		bytes, transfers := int64(5), uint64(0)
		if slots > 7 {
			bytes, transfers = 15, 1
		}
		if got := totals.Size(tally.Transmit).Total().Int64(); got != bytes {
			t.Errorf("%d slots: %d bytes, want %d", slots, got, bytes)
		}
		if got := totals.Duration().Count(); got != transfers {
			t.Errorf("%d slots: %d transfers, want %d", slots, got, transfers)
		}
		for _, s := range totals.Series() {
			if s.Sum.Int64() != want[s.Name] || s.Last() != 4 || !s.Valued || s.Category != "unknown" {
				t.Errorf("%d slots: series %+v, want %v", slots, s, want)
			}
			delete(want, s.Name)
		}
		if len(want) > 0 {
			t.Errorf("%d slots: %v is missing", slots, want)
		}
	}
}

// read returns the totals in a store.
func read(path string) (*tally.Totals, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	s, err := Open(file, filepath.Base(path))
	if err != nil {
		return nil, err
	}
	defer s.Close()
	values, err := s.Read(new(Buffer), nil)
	if err != nil {
		return nil, err
	}
	shape, err := tally.ImportShape(s.Bounds, true)
	if err != nil {
		return nil, err
	}
	return shape.Import(values, &tally.Values{}, nil), nil
}

func TestOtherFilesOfNIXLAreRecognized(t *testing.T) {
	for name, want := range map[string]bool{
		"nixl-owner.0.0.0.0:9400.lock": true, "nixl-owner.[::]:9400.lock": true, "nixl.1.2.3.mmap.staging": true,
		"nixl.1.2.3.mmap": false, "nixl-owner": false, "agent.lock": false, "nixl.1.2.mmap.staging": false, "nixl.a.2.3.mmap": false,
	} {
		if got := IsAuxiliary(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
