// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestRecallReturnsConsumedEventsThatWereNotOverwritten(t *testing.T) {
	for _, l := range ringbuf.Layouts() {
		path := filepath.Join(t.TempDir(), "agent")
		create := func() *ringbuf.Writer {
			w, err := ringbuf.Create(path, l, 16)
			must.OK(t, err)
			t.Cleanup(func() { must.OK(t, w.Close()) })
			return w
		}
		w := create()
		c, err := ringbuf.OpenReader(path, ringbuf.Consume)
		must.OK(t, err)
		defer c.Close()
		push := func(from, to uint64) {
			for v := from; v < to; v++ {
				must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeXferTime, v)))
			}
		}
		consume := func() {
			_, err := c.Read(0, func(ringbuf.Batch) {})
			must.OK(t, err)
			must.OK(t, c.Commit())
		}
		check := func(what string, from, to uint64) {
			t.Helper()
			var want, got []uint64
			for v := from; v < to; v++ {
				want = append(want, v)
			}
			must.OK(t, recall(path, func(b ringbuf.Batch) {
				for i := range b.Len() {
					got = append(got, b.Event(i).Value)
				}
			}))
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%v, %s (-want +got)\n%s", l, what, d)
			}
		}
		check("empty ring", 0, 0)
		push(1, 4)
		check("not consumed", 0, 0)
		consume()
		push(4, 6)
		check("in the first lap", 1, 4)
		for v := uint64(6); v < 38; v += 4 {
			push(v, v+4)
			consume()
		}
		check("all consumed", 23, 38) // the slot of event 22 is overwritten next
		push(38, 41)
		check("in a later lap", 26, 38) // the slot of event 25 is overwritten next
		create()
		check("after a restart", 0, 0)
	}
}

func TestOnlyRingsAreRecalled(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "missing"), "recall_linux_test.go"} {
		if err := recall(path, func(ringbuf.Batch) {}); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
}
