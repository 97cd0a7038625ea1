// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

// Buckets are the buckets of an exponential histogram, as in OTLP. Counts[i] is the
// number of values in (base^(Offset+i), base^(Offset+i+1)], where base is 2^(2^-Scale).
type Buckets struct {
	Scale  int32
	Offset int32
	Zero   uint64   // values that are 0
	Counts []uint64 // read-only, valid until the next event
}

// The scales that OpenTelemetry's SDKs use. At scale -10, the whole range of float64
// fits in three buckets.
const (
	maxScale = 20
	minScale = -10
)

// exponential is a histogram whose bounds grow by a constant factor. It starts at the
// finest scale, and halves its resolution whenever the range of the values needs more
// than maxSize buckets.
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

// copyOf returns a deep copy of from, in e unless it is nil.
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

// extend records a value outside the existing buckets.
func (e *exponential) extend(v float64, bin int32) {
	if shift := e.excess(bin); shift > 0 {
		e.downscale(shift)
		bin = index(v, e.scale)
	}
	e.grow(bin)
	e.counts[bin-e.offset]++
}

// excess returns how many times the resolution must be halved to fit bin.
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

// grow adds buckets up to bin, which must fit in maxSize buckets.
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
