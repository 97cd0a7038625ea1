// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"sync/atomic"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

func TestIdleMeansThatAReadFindsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, w *Writer, r *Reader)
		idle   bool
	}{
		"nothing": {func(*testing.T, *Writer, *Reader) {}, true},
		"pending": {func(t *testing.T, w *Writer, _ *Reader) { fill(t, w, 1, 2) }, false},
		"uncommitted": {func(t *testing.T, w *Writer, r *Reader) {
			fill(t, w, 1, 2)
			_, err := values(r)
			must.OK(t, err)
		}, true},
		"committed":      {func(t *testing.T, w *Writer, r *Reader) { fill(t, w, 1, 2); drain(t, r) }, true},
		"another reader": {func(_ *testing.T, w *Writer, _ *Reader) { atomic.StoreUint64(w.read, 1) }, false},
		"another reader of what is uncommitted": {func(t *testing.T, w *Writer, r *Reader) {
			fill(t, w, 1, 2)
			_, err := values(r)
			must.OK(t, err)
			atomic.StoreUint64(w.read, 1)
		}, false},
		"restarting":       {func(_ *testing.T, w *Writer, _ *Reader) { atomic.StoreInt32(w.version, 0) }, false},
		"another capacity": {func(_ *testing.T, w *Writer, _ *Reader) { atomic.StoreUint64(w.capacity, 32) }, false},
		"closed":           {func(t *testing.T, _ *Writer, r *Reader) { must.OK(t, r.Close()) }, false},
	} {
		for _, l := range Layouts() {
			p, w := plainRing(t, l, 16)
			r := p.reader(t, Consume)
			c.change(t, w, r)
			if got := r.Idle(); got != c.idle {
				t.Errorf("%v, %s: idle %v", l, name, got)
			}
		}
	}
}
