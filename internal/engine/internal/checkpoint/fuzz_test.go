// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// seeds returns checkpoints of a new agent and of one with totals, and invalid ones.
func seeds(f *testing.F) (list [][]byte) {
	f.Helper()
	a := tally.NewAgent(shapeOf(f, tally.Config{}))
	m := Mark{Layout: ringbuf.V4, Capacity: 16, From: 3, To: 7, Fingerprint: 9, Start: 1}
	list = append(list, Append(nil, m, State{Totals: Totals{Tally: a}}))
	a.Opened(true)
	a.Restarted(true)
	a.ForeignRead()
	list = append(list, Append(nil, m, State{Totals: Totals{Tally: a}}))
	earlier, err := os.ReadFile(filepath.Join("testdata", "version1"))
	must.OK(f, err)
	return append(list, earlier, nil)
}

func shapeOf(tb testing.TB, c tally.Config) *tally.Shape {
	tb.Helper()
	shape, err := tally.NewShape(c)
	must.OK(tb, err)
	return shape
}

// FuzzParse parses any bytes. An accepted checkpoint can be encoded again.
func FuzzParse(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b)
	}
	shape := shapeOf(f, tally.Config{})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Parse(b)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("error is %v", err)
			}
			return
		}
		if a, _, err := c.Restore(shape); err == nil {
			if _, err := Parse(Append(nil, c.Mark, a)); err != nil {
				t.Error(err)
			}
		}
	})
}

// FuzzRestore adds a correct checksum to any bytes, so that the totals are decoded. Restored
// totals are usable.
func FuzzRestore(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b)
	}
	shapes := []*tally.Shape{
		shapeOf(f, tally.Config{}),
		shapeOf(f, tally.Config{MaxNames: 2, Size: tally.HistogramConfig{Kind: tally.Exponential, MaxSize: 20}}),
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= checkSize {
			body := b[:len(b)-checkSize]
			b = binary.LittleEndian.AppendUint32(slices.Clip(body), crc32.Checksum(body, castagnoli))
		}
		c, err := Parse(b)
		if err != nil {
			return
		}
		for _, shape := range shapes {
			restored, _, err := c.Restore(shape)
			if err != nil {
				if !errors.Is(err, tally.ErrCheckpoint) && !errors.Is(err, tally.ErrShape) {
					t.Errorf("error is %v", err)
				}
				continue
			}
			a := restored.Tally
			if usage, known := a.MemoryUsage(); usage < 0 || !known && usage != 0 {
				t.Errorf("memory usage is %d (known: %v)", usage, known)
			}
			a.Restarted(false)
			snapshot := a.Snapshot(nil)
			if sum := snapshot.Duration().Sum(); math.IsNaN(sum) || sum < 0 {
				t.Errorf("sum is %v", sum)
			}
			snapshot.Events(func(string, string, uint64) {})
		}
	})
}
