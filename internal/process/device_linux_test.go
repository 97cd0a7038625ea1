// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/files"
)

func TestDeviceOfMappingIsThatOfStat(t *testing.T) {
	for _, dev := range []uint64{0xfe00, 0x1a, 1<<20 | 0x1a, 0x12<<44 | 0xfff01} {
		if got, ok := device([]byte(files.Device(dev))); got != dev || !ok {
			t.Errorf("%s is %#x, want %#x", files.Device(dev), got, dev)
		}
	}
	for _, bad := range []string{"", "fe", "fe:0x", "f e:00"} {
		if _, ok := device([]byte(bad)); ok {
			t.Errorf("%q is valid", bad)
		}
	}
}
