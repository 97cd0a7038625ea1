package simulate

import (
	"math/bits"
	"slices"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// sum adds up values of events of one kind.
type sum struct {
	count     uint64
	sum       uint64 // modulo 2^64
	min, max  uint64
	last      uint64
	overflows uint64 // how often sum has wrapped
}

func (s *sum) add(v uint64) {
	if s.count == 0 || v < s.min {
		s.min = v
	}
	s.max = max(s.max, v)
	s.count++
	s.last = v
	var carry uint64
	s.sum, carry = bits.Add64(s.sum, v, 0)
	s.overflows += carry
}

// sums are of the events with one fate, by kind and by whether they were of a
// layout with names, where errors are called otherwise.
type sums struct {
	by     [2][kinds]sum
	newest [kinds]uint8 // which of the two has seen an event last
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

// both is the sum of a kind over all layouts.
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
	a.min, a.max = min(a.min, b.min), max(a.max, b.max)
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

// buckets count values in the catalog's default buckets.
type buckets struct {
	bounds []uint64
	counts []uint64 // one more than bounds
}

func newBuckets(bounds []float64, unit float64) buckets {
	b := buckets{counts: make([]uint64, len(bounds)+1)}
	for _, v := range bounds {
		b.bounds = append(b.bounds, uint64(v*unit+0.5))
	}
	return b
}

func (b *buckets) add(v uint64) {
	i := 0
	for i < len(b.bounds) && v > b.bounds[i] {
		i++
	}
	b.counts[i]++
}

// histograms are the values whose distribution the catalog wants.
type histograms struct{ txBytes, rxBytes, xfer, post buckets }

const micros = 1e6 // in a second

// bucketBounds are those of the histograms.
func bucketBounds() Bounds {
	return Bounds{
		Bytes:  newBuckets(semconv.SizeBounds(), 1).bounds,
		Micros: newBuckets(semconv.DurationBounds(), micros).bounds,
	}
}

func newHistograms() histograms {
	return histograms{
		txBytes: newBuckets(semconv.SizeBounds(), 1),
		rxBytes: newBuckets(semconv.SizeBounds(), 1),
		xfer:    newBuckets(semconv.DurationBounds(), micros),
		post:    newBuckets(semconv.DurationBounds(), micros),
	}
}

func (h *histograms) add(events []staged) {
	for i := range events {
		switch ringbuf.Type(events[i].kind) {
		case ringbuf.TypeTxBytes:
			h.txBytes.add(events[i].value)
		case ringbuf.TypeRxBytes:
			h.rxBytes.add(events[i].value)
		case ringbuf.TypeXferTime:
			h.xfer.add(events[i].value)
		case ringbuf.TypeXferPostTime:
			h.post.add(events[i].value)
		default:
		}
	}
}

func (b *buckets) clone() []uint64 { return slices.Clone(b.counts) }
