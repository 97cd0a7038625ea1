// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"math"
	"sync"
	"sync/atomic"
)

// mostSum is the maximum of a sum: the largest value of an OTLP counter.
const mostSum = math.MaxInt64

func saturatedSum(v uint64) int64 {
	return int64(min(v, mostSum))
}

// saturatingSum adds two values from 0 to mostSum.
func saturatingSum(a, b int64) int64 {
	return saturatedSum(uint64(a) + uint64(b))
}

// saturating is a sum of non-negative values that stops at mostSum. A negative
// word means that the sum has reached mostSum.
type saturating struct{ word atomic.Int64 }

// largeValue is larger than any real value, and so small that 2^15 goroutines would
// have to add it at the same time to wrap the word through all negative numbers
// before one of them resets it.
const largeValue = 1 << 48

// add is small enough to be inlined; it then costs as much as an atomic addition.
func (s *saturating) add(v int64) {
	if v >= largeValue || s.word.Add(v) < 0 {
		s.addSlowly(v)
	}
}

// large serializes the addition of large values: three concurrent additions could
// wrap the word to a positive value.
var large sync.Mutex

// addSlowly adds a large value, or marks the sum as saturated.
func (s *saturating) addSlowly(v int64) {
	large.Lock()
	defer large.Unlock()
	if s.word.Load() < 0 || s.word.Add(v) < 0 {
		s.word.Store(math.MinInt64)
	}
}

func (s *saturating) load() int64 {
	if v := s.word.Load(); v >= 0 {
		return v
	}
	return mostSum
}
