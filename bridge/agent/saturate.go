// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"math"
	"sync"
	"sync/atomic"
)

// mostSum is where sums stop: the most that a counter of OTLP holds.
const mostSum = math.MaxInt64

func saturatedSum(v uint64) int64 {
	return int64(min(v, mostSum))
}

// saturatingSum adds values from 0 to mostSum.
func saturatingSum(a, b int64) int64 {
	return saturatedSum(uint64(a) + uint64(b))
}

// saturating is a sum of values that aren't negative, which stops at mostSum. A
// negative word means that it has.
type saturating struct{ word atomic.Int64 }

// largeValue is small enough that 2^15 goroutines would have to add it at the
// same time to wrap a word through all negative numbers before the first of them
// resets it, and larger than any real value.
const largeValue = 1 << 48

// add costs as much as an atomic addition, if it is inlined.
func (s *saturating) add(v int64) {
	if v >= largeValue || s.word.Add(v) < 0 {
		s.addSlowly(v)
	}
}

// large serializes the addition of large values: three could wrap unnoticed.
var large sync.Mutex

// addSlowly adds a large value, or stops the sum.
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
