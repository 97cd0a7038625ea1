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
	bounds := HistogramConfig{Bounds: []float64{1, 2}} // not the defaults, which may change
	ring := busyAgent(t, shapeOf(t, Config{Size: HistogramConfig{Kind: Exponential}, Duration: bounds, Throughput: bounds}))
	stored := ring.AppendTotals(nil)
	d := decoder{rest: stored}
	version, sum := d.uint(), crc32.ChecksumIEEE(stored)
	switch {
	case version != 6:
		t.Errorf("adjust this test: the version is %d and the checksum %#x", version, sum)
	case sum != 0x3638a34d:
		t.Errorf("the stored form has changed (checksum %#x), so its version must change, too", sum)
	}
}
