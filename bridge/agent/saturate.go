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

// saturatingSum adds what lies between 0 and mostSum.
func saturatingSum(a, b int64) int64 {
	return saturatedSum(uint64(a) + uint64(b))
}

// saturating is a sum of values that aren't negative, which stands still once
// it has reached the most. A negative word is one that has.
type saturating struct{ word atomic.Int64 }

// largeValue is so small that 2^15 goroutines at once would have to add as much
// to take a word through all negative numbers, before the first of them puts
// it back, and so large that nothing has it that is true.
const largeValue = 1 << 48

// add costs what an addition does, as long as it is inlined.
func (s *saturating) add(v int64) {
	if v >= largeValue || s.word.Add(v) < 0 {
		s.addSlowly(v)
	}
}

// large lets one large value be added at a time: three could wrap unseen.
var large sync.Mutex

// addSlowly adds a large value, or has the sum stand still.
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
