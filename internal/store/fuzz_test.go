// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package store

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/storetest"
	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// FuzzStore reads arbitrary bytes as a store. Accepted stores must have valid totals.
func FuzzStore(f *testing.F) {
	b := storetest.Bytes(f)
	f.Add(b)
	f.Add(bytes.Repeat([]byte{0xff}, size))
	name, ok := parseName(storetest.Real)
	if !ok {
		f.Fatal("can't parse the name of the real store")
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) != size {
			return
		}
		h, err := parseHeader(b, name)
		if err != nil {
			return
		}
		shape, err := newShape(h.bounds, true)
		if err != nil {
			return
		}
		var v, sum tally.Values
		update(&v, b, len(h.bounds))
		sum.Add(&v)
		sum.Add(&v)
		var want tally.Values
		want.Set(&sum)
		if sum.Raise(&v); !cmp.Equal(want, sum) {
			t.Error("a sum is less than one of its parts")
		}
		totals := shape.Import(&sum, &v, nil)
		if n := len(totals.Duration().Counts()); len(h.bounds) > 0 && n != len(h.bounds)+1 {
			t.Errorf("%d counts with %d bounds", n, len(h.bounds))
		}
		if usage, known := totals.MemoryUsage(); known && usage < 0 {
			t.Errorf("memory usage is %d", usage)
		}
	})
}

// FuzzCheckpoint decodes arbitrary bytes as a checkpoint. Encoding and decoding an
// accepted checkpoint again must keep its processes.
func FuzzCheckpoint(f *testing.F) {
	name, _ := parseName(storetest.Real)
	h, err := parseHeader(storetest.Bytes(f), name)
	if err != nil {
		f.Fatal(err)
	}
	p := &process{header: h, file: storetest.Real}
	update(&p.values, storetest.Bytes(f), len(h.bounds))
	now := time.Unix(1_800_000_000, 0)
	a := &agent{start: now, bounds: h.bounds, processes: []*process{p}, counted: map[string]time.Time{"nixl.1.2.3.mmap": now}, hasBase: true}
	a.base.Add(&p.values)
	f.Add(a.encode(now))
	f.Add([]byte(`{"Version":1,"Bounds":[1],"Running":{"nixl.1.2.3.mmap":{"Duration":{"Counts":[1]}}}}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decode(b)
		if err != nil {
			return
		}
		a := &agent{counted: make(map[string]time.Time)}
		a.restore(&s, now)
		var total tally.Values
		total.Set(&a.base)
		for _, p := range a.processes {
			a.add(&total, p)
		}
		again, err := decode(a.encode(now))
		if err != nil || len(again.Running) != len(s.Running) {
			t.Errorf("%v; %d running processes, want %d", err, len(again.Running), len(s.Running))
		}
	})
}
