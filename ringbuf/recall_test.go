// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"path/filepath"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

func TestRecallReturnsConsumedEventsThatWereNotOverwritten(t *testing.T) {
	eachLayout(t, func(t *testing.T, l Layout) {
		recalled := func(path string) (list []Event) {
			t.Helper()
			b, err := Recall(path)
			must.OK(t, err)
			list = []Event{}
			for i := range b.Len() {
				list = append(list, b.Event(i))
			}
			return list
		}
		w := newRing(t, l, 16)
		c := open(t, w.Path(), Consume)
		equal(t, "of an empty ring", recalled(w.Path()), []Event{})
		push(t, w, 0, 3)
		equal(t, "not consumed", recalled(w.Path()), []Event{})
		read(t, c)
		commit(t, c)
		push(t, w, 3, 5)
		equal(t, "in the first lap", recalled(w.Path()), samples(l, 0, 3))
		for from := 5; from < 37; from += 4 {
			push(t, w, from, from+4)
			read(t, c)
			commit(t, c)
		}
		equal(t, "all consumed", recalled(w.Path()), samples(l, 22, 37)) // the slot of event 21 is overwritten next
		push(t, w, 37, 40)
		// The slot of event 24 is overwritten next.
		equal(t, "in a later lap", recalled(w.Path()), samples(l, 25, 37))
		equal(t, "after a restart", recalled(create(t, w.Path(), l, 16).Path()), []Event{})
	})
	before, path := openFiles(t), newRing(t, V4, 16).Path()
	for range 10 {
		_, err := Recall(path)
		must.OK(t, err)
	}
	if after := openFiles(t); after > before {
		t.Errorf("%d files open, %d before", after, before)
	}
	for _, path := range []string{filepath.Join(t.TempDir(), "missing"), "recall_test.go"} {
		if _, err := Recall(path); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
}
