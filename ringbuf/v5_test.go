// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// encodeV5 returns a ring in the format of ai-dynamo/nixl#2018.
func encodeV5(capacity, read, write uint64, slots func(i uint64) (kind uint32, value uint64)) []byte {
	le := binary.LittleEndian
	b := make([]byte, 512+capacity*16)
	le.PutUint64(b[0:], write)
	le.PutUint64(b[8:], capacity)
	le.PutUint32(b[16:], 5)
	le.PutUint64(b[24:], capacity-1)
	le.PutUint64(b[256:], read)
	for i := range capacity {
		kind, value := slots(i)
		le.PutUint32(b[512+16*i:], kind)
		le.PutUint64(b[512+16*i+8:], value)
	}
	return b
}

func TestV5IsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent")
	ring := encodeV5(8, 6, 3, func(i uint64) (uint32, uint64) { return uint32(i), 100 + i })
	ok(t, os.WriteFile(path, ring, 0o600))
	h, err := Peek(path)
	if want := (Header{WritePos: 3, ReadPos: 6, Version: 5, Capacity: 8, Mask: 7}); h != want || err != nil {
		t.Errorf("header %+v, want %+v (%v)", h, want, err)
	}
	r := open(t, path, Consume)
	if r.Layout() != V5 || r.Capacity() != 8 {
		t.Errorf("layout %v, capacity %d", r.Layout(), r.Capacity())
	}
	var want []Event
	for _, i := range []uint64{6, 7, 0, 1, 2} {
		want = append(want, NewEvent(Type(i), 100+i))
	}
	equal(t, "events", read(t, r), want)
	commit(t, r)
	binary.LittleEndian.PutUint64(ring[256:], 3)
	equal(t, "the file after the commit", bytesOf(t, path), ring)
}

func TestV5IsWritten(t *testing.T) {
	w := newRing(t, V5, 8)
	for i := range uint64(5) {
		ok(t, w.Push(NewEvent(Type(i), 100+i)))
	}
	equal(t, "the file", bytesOf(t, w.Path()), encodeV5(8, 0, 5, func(i uint64) (uint32, uint64) {
		if i >= 5 {
			return 0, 0
		}
		return uint32(i), 100 + i
	}))
}

// If the agent fails to start, the version stays 0.
func TestInvalidV5RingsAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent")
	failed := make([]byte, 512+12*16)
	failed[8], failed[24] = 12, 11
	short := encodeV5(8, 0, 0, func(uint64) (uint32, uint64) { return 0, 0 })
	for _, c := range []struct {
		ring []byte
		want error
		says string
	}{
		{failed, ErrNotReady, "12 slots are not a power of two"},
		{short[:len(short)-16], ErrInvalid, "truncated?"},
		{short[:40], ErrInvalid, ""},
		{short[:300], ErrInvalid, ""},
	} {
		ok(t, os.WriteFile(path, c.ring, 0o600))
		_, err := OpenReader(path, Observe)
		if !errors.Is(err, c.want) {
			t.Errorf("%d bytes: %v, want %v", len(c.ring), err, c.want)
			continue
		}
		says(t, err, c.says)
	}
}

// An agent alternates between V4 and V5 under one name. Every event is read exactly
// once.
func TestRestartsBetweenV4AndV5LoseNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent")
	var r *Reader
	next := uint64(1)
	var got, want []uint64
	for run := range 40 {
		l := []Layout{V4, V5}[run%2]
		capacity := []int{64, 64, 16, 64, 128, 32}[run%6]
		w, err := Create(path, l, capacity)
		ok(t, err)
		if r != nil {
			events, err := tryRead(r, 0)
			if len(events) != 0 || !errors.Is(err, ErrRestarted) && !errors.Is(err, ErrShrunk) {
				t.Fatalf("run %d: %d events of the last run, error %v", run, len(events), err)
			}
			if err := r.Commit(); err != nil && !errors.Is(err, ErrRestarted) && !errors.Is(err, ErrShrunk) {
				t.Fatalf("run %d: commit: %v", run, err)
			}
			closeNow(t, r)
		}
		r, err = OpenReader(path, Consume)
		ok(t, err)
		for range run % 7 {
			n := uint64(capacity / 3)
			for v := next; v < next+n; v++ {
				ok(t, w.Push(NewEvent(TypeTxBytes, v)))
			}
			want = append(want, span(next, next+n)...)
			next += n
			for _, e := range read(t, r) {
				got = append(got, e.Value)
			}
			commit(t, r)
		}
		ok(t, w.Close())
	}
	closeNow(t, r)
	equal(t, "events of all runs", got, want)
}
