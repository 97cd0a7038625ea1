// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"math/bits"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// sum is the sum of the values of events of one kind.
type sum struct {
	count     uint64
	sum       uint64 // modulo 2^64
	last      uint64
	overflows uint64 // number of times that sum has wrapped
}

func (s *sum) add(v uint64) {
	s.count++
	s.last = v
	var carry uint64
	s.sum, carry = bits.Add64(s.sum, v, 0)
	s.overflows += carry
}

// sums are sums by kind, separately for layouts with types and with names, because errors have
// other names in the latter.
type sums struct {
	by     [2][kinds]sum
	newest [kinds]uint8 // index in by of the newest event
}

func family(l ringbuf.Layout) uint8 {
	if l.Named() {
		return 1
	}
	return 0
}

func (s *sums) add(l ringbuf.Layout, k kind, value uint64) {
	f := family(l)
	s.by[f][k].add(value)
	s.newest[k] = f
}

func (s *sums) addAll(l ringbuf.Layout, events []staged) {
	for i := range events {
		s.add(l, events[i].kind, events[i].value)
	}
}

// both returns the sum of a kind over all layouts.
func (s *sums) both(k kind) sum {
	f := s.newest[k]
	a, b := s.by[f][k], s.by[1-f][k]
	if b.count == 0 {
		return a
	}
	var carry uint64
	a.sum, carry = bits.Add64(a.sum, b.sum, 0)
	a.overflows += b.overflows + carry
	a.count += b.count
	return a
}

func (s *sums) events() (n uint64) {
	for _, of := range s.by {
		for k := range of {
			n += of[k].count
		}
	}
	return n
}
