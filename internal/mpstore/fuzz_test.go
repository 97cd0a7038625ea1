// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package mpstore

import (
	"bytes"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/storetest"
	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// FuzzStore reads arbitrary bytes as a store. Accepted stores must have valid totals.
func FuzzStore(f *testing.F) {
	f.Add(storetest.Bytes(f))
	f.Add(bytes.Repeat([]byte{0xff}, sizeOf(maxSlots)))
	name, ok := parseName(storetest.Real)
	if !ok {
		f.Fatal("can't parse the name of the real store")
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < headerSize {
			return
		}
		h, err := parseHeader(b, int64(len(b)), name)
		if err != nil {
			return
		}
		shape, err := tally.ImportShape(h.Bounds, true)
		if err != nil {
			return
		}
		for _, exited := range []bool{false, true} {
			totals := shape.Import(h.decode(b), exited)
			if n := len(totals.Duration().Counts()); len(h.Bounds) > 0 && n != len(h.Bounds)+1 {
				t.Errorf("%d counts with %d bounds", n, len(h.Bounds))
			}
			if usage, known := totals.MemoryUsage(); usage < 0 || exited && (usage != 0 || !known) {
				t.Errorf("exited %v: memory usage is %d, known %v", exited, usage, known)
			}
		}
	})
}
