// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

// Buckets are the buckets of an exponential histogram, as OTLP has them.
// Counts[i] is the number of values in (base^(Offset+i), base^(Offset+i+1)],
// base being 2^(2^-Scale).
type Buckets struct {
	Scale  int32
	Offset int32
	Zero   uint64   // values that are 0
	Counts []uint64 // not to be changed, and valid until the next event
}

// The scales that OpenTelemetry's SDKs use: 20 is finer than any measurement,
// and at -10 all of float64 fits into three buckets.
const (
	maxScale = 20
	minScale = -10
)

// exponential is a histogram of positive values whose buckets grow by a
// constant factor. It starts at the finest scale, and halves its resolution
// whenever the range of the values asks for more buckets than it may have.
type exponential struct {
	maxSize int
	scale   int32
	zero    uint64
	offset  int32
	counts  []uint64 // counts[i] is of bucket offset+i
}

func newExponential(maxSize int) *exponential {
	return &exponential{maxSize: maxSize, scale: maxScale, counts: make([]uint64, 0, maxSize)}
}

// copyOf returns a copy of from that shares no memory with it, in place of e
// if e isn't nil.
func (e *exponential) copyOf(from *exponential) *exponential {
	if e == nil {
		e = new(exponential)
	}
	counts := e.counts
	*e = *from
	e.counts = append(counts[:0], from.counts...)
	return e
}

func (e *exponential) record(v float64) {
	if v == 0 {
		e.zero++
		return
	}
	bin := index(v, e.scale)
	if i := uint(bin - e.offset); i < uint(len(e.counts)) {
		e.counts[i]++
		return
	}
	e.extend(v, bin)
}

// extend counts a value beyond the buckets that there are.
func (e *exponential) extend(v float64, bin int32) {
	if shift := e.excess(bin); shift > 0 {
		e.downscale(shift)
		bin = index(v, e.scale)
	}
	e.grow(bin)
	e.counts[bin-e.offset]++
}

// excess is how often the resolution has to be halved for bin to fit.
func (e *exponential) excess(bin int32) int32 {
	if len(e.counts) == 0 {
		return 0
	}
	low := min(bin, e.offset)
	high := max(bin, e.offset+int32(len(e.counts))-1)
	var shift int32
	for int(high)-int(low) >= e.maxSize && e.scale-shift > minScale {
		low, high = low>>1, high>>1
		shift++
	}
	return shift
}

// downscale merges each 2^shift buckets into one, in place.
func (e *exponential) downscale(shift int32) {
	e.scale -= shift
	offset := e.offset >> shift
	var last int32
	for i, n := range e.counts {
		at := (e.offset+int32(i))>>shift - offset
		if at != int32(i) {
			e.counts[i] = 0
			e.counts[at] += n
		}
		last = at
	}
	e.counts, e.offset = e.counts[:last+1], offset
}

// grow makes room for bin, which excess has found to fit.
func (e *exponential) grow(bin int32) {
	if len(e.counts) == 0 {
		e.offset = bin
	}
	if below := int(e.offset - bin); below > 0 {
		n := len(e.counts)
		e.counts = e.counts[:n+below]
		copy(e.counts[below:], e.counts[:n])
		clear(e.counts[:below])
		e.offset = bin
	}
	for int(bin-e.offset) >= len(e.counts) {
		e.counts = append(e.counts, 0)
	}
}

func (e *exponential) count() uint64 {
	n := e.zero
	for _, c := range e.counts {
		n += c
	}
	return n
}

func (e *exponential) buckets() Buckets {
	return Buckets{Scale: e.scale, Offset: e.offset, Zero: e.zero, Counts: e.counts}
}
