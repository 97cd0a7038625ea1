// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"testing"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestEnoughSlotsAssumesABurstOfTwiceTheRing(t *testing.T) {
	for _, tc := range []struct {
		capacity int
		more     uint64
		want     int
	}{
		{4096, 0, 16384},
		{4096, 100, 16384},
		{4096, 4096, 16384},
		{4096, 4097, 32768},
		{4096, 48380, 131072},
		{2, 0, 8},
		{4096, 1 << 62, ringbuf.MaxCapacity},
		{4096, 1<<64 - 1, ringbuf.MaxCapacity},
	} {
		if got := EnoughSlots(tc.capacity, tc.more); got != tc.want {
			t.Errorf("%d slots and %d more: %d, want %d", tc.capacity, tc.more, got, tc.want)
		}
	}
}
