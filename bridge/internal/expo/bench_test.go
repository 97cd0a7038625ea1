// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package expo

import "testing"

func BenchmarkRecord(b *testing.B) {
	var h Histogram
	b.ReportAllocs()
	for ns := int64(0); b.Loop(); ns += 7 {
		h.Record(1000 + ns&0xffff)
	}
}

// BenchmarkPoint measures reading one histogram, as for an export.
func BenchmarkPoint(b *testing.B) {
	var h Histogram
	for ns := range int64(1 << 16) {
		h.Record(ns)
	}
	b.ReportAllocs()
	for b.Loop() {
		var s Sum
		s.Add(&h)
		if s.Point().Count != 1<<16 {
			b.Fatal("lost a record")
		}
	}
}
