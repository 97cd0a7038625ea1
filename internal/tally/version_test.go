// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"hash/crc32"
	"testing"
)

// A release must not restore totals that it would misread, so a change of the stored form also
// changes its version.
func TestVersionChangesWithTheStoredForm(t *testing.T) {
	values := Values{Duration: Distribution{Counts: []uint64{1, 2}}, Others: []Other{{Last: 3}}}
	processes := Processes{
		Bounds: []float64{1}, Base: values, Counted: []string{"a"},
		Running: []ProcessValues{{Store: "b", PID: 1, Instance: 2, Start: 3, Host: "c", LocalRank: "d", Values: values, Before: &values}},
	}
	bounds := HistogramConfig{Bounds: []float64{1, 2}} // not the defaults, which may change
	ring := busyAgent(t, shapeOf(t, Config{Size: HistogramConfig{Kind: Exponential}, Duration: bounds, Throughput: bounds}))
	for _, form := range []struct {
		name         string
		stored       []byte
		version, sum uint32
	}{
		{"totals of a ring", ring.AppendTotals(nil), 6, 0x3638a34d},
		{"totals of processes", processes.AppendTotals(nil), 1 << 8, 0x7ca65816},
	} {
		d := decoder{rest: form.stored}
		version, sum := uint32(d.uint()), crc32.ChecksumIEEE(form.stored)
		switch {
		case version != form.version:
			t.Errorf("adjust this test: the %s have version %d and checksum %#x", form.name, version, sum)
		case sum != form.sum:
			t.Errorf("the stored form of the %s has changed (checksum %#x), so its version must change, too", form.name, sum)
		}
	}
}
