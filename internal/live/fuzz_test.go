// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package live

import "testing"

func FuzzFrame(f *testing.F) {
	f.Add([]byte(`{"version":1,"bounds":[[1,2]],"agents":[{"totals":{"durations":{"counts":[1,2,3]},
		"sizes":{"counts":[4],"exponential":{"scale":3,"offset":-7,"zero":1}}}}]}`))
	f.Add([]byte(`{"version":1,"error":"it hangs"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var frame Frame
		if frame.Unmarshal(line) != nil {
			return
		}
		frame.histograms(func(h *Histogram) {
			if bounds, counts := h.Explicit(); len(counts) > 0 && len(counts) != len(bounds)+1 {
				t.Errorf("%d counts for %d bounds", len(counts), len(bounds))
			}
		})
	})
}
