// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// Nothing but the slots shows a restart at position 0.
func TestFingerprintCoversAllSlots(t *testing.T) {
	sum := func(different uint64) uint32 {
		p, w := plainRing(t, V4, 4096)
		for i := range uint64(4000) {
			value := uint64(1)
			if i == different {
				value = 2
			}
			must.OK(t, w.Push(NewEvent(TypeTxBytes, value)))
		}
		r := p.reader(t, Consume)
		for _, limit := range []int{1000, 0} { // in two passes
			_, err := r.Read(limit, func(Batch) {})
			must.OK(t, err)
		}
		got, err := r.Fingerprint(r.Position())
		must.OK(t, err)
		must.OK(t, r.Commit())
		return got
	}
	for _, slot := range []uint64{0, 999, 1000, 3999} {
		if sum(slot) == sum(4096) {
			t.Errorf("a change of slot %d doesn't change the fingerprint", slot)
		}
	}
}
