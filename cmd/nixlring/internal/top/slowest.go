// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"slices"
	"time"
)

// Transfer is one completed transfer.
type Transfer struct {
	At         time.Time // when the agent recorded it, with layout v1; else when it was read
	Receive    bool      // whether the agent received data
	Bytes      uint64
	Took, Post time.Duration
}

// Throughput returns the throughput in bytes per second. As in the metric, a time of 0 µs
// counts as 1 µs.
func (t *Transfer) Throughput() float64 {
	return float64(t.Bytes) / max(t.Took, time.Microsecond).Seconds()
}

const (
	// SlowestFor is how long one of the slowest transfers is kept.
	SlowestFor = time.Minute
	// slowestKept is the maximum number of slowest transfers.
	slowestKept = 10
	// sliceOf is the length of a slice of time. Transfers of a slice expire together.
	sliceOf = 5 * time.Second
)

// slowest keeps the slowest transfers of one agent.
type slowest struct {
	slices []slice // oldest first
}

// slice is the slowest transfers of a slice of time.
type slice struct {
	begin time.Time
	list  []Transfer // slowest first
}

// add adds a transfer that was read now.
func (s *slowest) add(now time.Time, t Transfer) {
	last := len(s.slices) - 1
	if last < 0 || now.Sub(s.slices[last].begin) >= sliceOf {
		s.expire(now)
		s.slices = append(s.slices, slice{begin: now})
		last = len(s.slices) - 1
	}
	list := s.slices[last].list
	if len(list) == slowestKept {
		if t.Took <= list[slowestKept-1].Took {
			return
		}
		list = list[:slowestKept-1]
	}
	i, _ := slices.BinarySearchFunc(list, t, byTime)
	s.slices[last].list = slices.Insert(list, i, t)
}

func byTime(a, b Transfer) int { return cmp.Compare(b.Took, a.Took) }

// expire removes slices that are too old.
func (s *slowest) expire(now time.Time) {
	s.slices = slices.DeleteFunc(s.slices, func(s slice) bool { return now.Sub(s.begin) >= SlowestFor })
}

// list returns the slowest transfers, the slowest first.
func (s *slowest) list(now time.Time) (all []Transfer) {
	s.expire(now)
	for _, part := range s.slices {
		all = append(all, part.list...)
	}
	slices.SortStableFunc(all, byTime)
	return all[:min(len(all), slowestKept)]
}
