// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func shapeOf(tb testing.TB, c tally.Config) *tally.Shape {
	tb.Helper()
	shape, err := tally.NewShape(c)
	must.OK(tb, err)
	return shape
}

// FuzzParse parses any bytes, with a correct checksum and without. An accepted checkpoint can be
// encoded again.
func FuzzParse(f *testing.F) {
	m := Mark{Layout: ringbuf.V4, Capacity: 16, From: 3, To: 7, Fingerprint: 9, Start: 1}
	f.Add(Append(nil, m, func(b []byte) []byte { return append(b, 1, 2, 3) }))
	earlier, err := os.ReadFile(filepath.Join("testdata", "version1"))
	must.OK(f, err)
	f.Add(earlier)
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, _, err := Parse(b); err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("error is %v", err)
		}
		if len(b) >= checkSize {
			body := b[:len(b)-checkSize]
			b = binary.LittleEndian.AppendUint32(slices.Clip(body), crc32.Checksum(body, castagnoli))
		}
		m, state, err := Parse(b)
		if err != nil {
			return
		}
		if again := Append(nil, m, func(b []byte) []byte { return append(b, state...) }); !bytes.Equal(again, b) {
			t.Errorf("%x is encoded as %x", b, again)
		}
	})
}
