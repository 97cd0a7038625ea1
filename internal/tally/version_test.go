// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"hash/crc32"
	"testing"
)

// A release must not restore totals that it would misread, so a change of the stored form also
// changes the version of checkpoints.
func TestVersionChangesWithTheStoredForm(t *testing.T) {
	bounds := HistogramConfig{Bounds: []float64{1, 2}} // not the defaults, which may change
	ring := busyAgent(t, shapeOf(t, Config{Size: HistogramConfig{Kind: Exponential}, Duration: bounds, Throughput: bounds}))
	if sum := crc32.ChecksumIEEE(store(t, ring)); sum != 0x68a93aa2 {
		t.Errorf("the stored form has changed (checksum %#x), so the version in package checkpoint must change, too", sum)
	}
}
