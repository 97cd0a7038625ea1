// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// taking returns a transfer with a transfer time in milliseconds.
func taking(ms int) Transfer { return Transfer{Took: time.Duration(ms) * time.Millisecond} }

func listed(s *slowest, now time.Time) (ms []int64) {
	for _, t := range s.list(now) {
		ms = append(ms, t.Took.Milliseconds())
	}
	return ms
}

func TestSlowestTransfersAreKeptForAMinute(t *testing.T) {
	var s slowest
	s.add(begin, taking(500))
	for i := range 20 {
		s.add(begin.Add(30*time.Second), taking(i))
	}
	want := []int64{500, 19, 18, 17, 16, 15, 14, 13, 12, 11}
	if diff := cmp.Diff(want, listed(&s, begin.Add(59*time.Second))); diff != "" {
		t.Error(diff)
	}
	s.add(begin.Add(61*time.Second), taking(1000))
	want = []int64{1000, 19, 18, 17, 16, 15, 14, 13, 12, 11}
	if diff := cmp.Diff(want, listed(&s, begin.Add(61*time.Second))); diff != "" {
		t.Error(diff)
	}
	if got := listed(&s, begin.Add(3*time.Minute)); len(got) != 0 {
		t.Errorf("two minutes later: %v", got)
	}
}

func TestNumberOfKeptTransfersIsLimited(t *testing.T) {
	var s slowest
	for i := range 100_000 {
		s.add(begin.Add(time.Duration(i)*10*time.Millisecond), taking(i%777))
	}
	n := 0
	for _, part := range s.slices {
		n += len(part.list)
	}
	if most := slowestKept * int(SlowestFor/sliceOf+1); n > most || n < most/2 {
		t.Errorf("%d transfers are kept, want at most %d", n, most)
	}
}

func TestTransferConsistsOfFourEventsInOrder(t *testing.T) {
	const post, took, tx, rx, txDone, rxDone = ringbuf.TypeXferPostTime, ringbuf.TypeXferTime,
		ringbuf.TypeTxBytes, ringbuf.TypeRxBytes, ringbuf.TypeTxRequests, ringbuf.TypeRxRequests
	for _, tt := range []struct {
		name   string
		events []ringbuf.Type
		want   int
	}{
		{"write", []ringbuf.Type{post, took, tx, txDone}, 1},
		{"read", []ringbuf.Type{post, took, rx, rxDone}, 1},
		{"two", []ringbuf.Type{post, took, rx, rxDone, post, took, tx, txDone}, 2},
		{"with an error in between", []ringbuf.Type{post, took, ringbuf.TypeErrBackend, tx, txDone}, 1},
		{"incomplete, then complete", []ringbuf.Type{tx, txDone, post, took, tx, txDone}, 1},
		{"mixed directions", []ringbuf.Type{post, took, tx, rxDone}, 0},
		{"without time", []ringbuf.Type{post, tx, txDone}, 0},
		{"without bytes", []ringbuf.Type{post, took, txDone}, 0},
		{"without post time", []ringbuf.Type{took, tx, txDone}, 0},
		{"interrupted by the next", []ringbuf.Type{post, took, post, took, tx, txDone}, 1},
	} {
		var a agentTransfers
		got := 0
		for i, e := range tt.events {
			if a.add(e, uint64(i+1)) {
				got++
			}
		}
		if got != tt.want {
			t.Errorf("%s: %d transfers, want %d", tt.name, got, tt.want)
		}
	}
	var a agentTransfers
	for i, e := range []ringbuf.Type{post, took, rx, rxDone} {
		a.add(e, []uint64{7, 1000, 4096, 1}[i])
	}
	want := Transfer{Receive: true, Bytes: 4096, Took: time.Millisecond, Post: 7 * time.Microsecond}
	if a.open != want || a.open.Throughput() != 4_096_000 {
		t.Errorf("%+v, %v B/s", a.open, a.open.Throughput())
	}
}
