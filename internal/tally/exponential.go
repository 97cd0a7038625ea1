// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"math"

	"github.com/lightstep/go-expohisto/structure"
)

// Buckets are the buckets of an exponential histogram, as in OTLP. Counts[i] is the
// number of values in (base^(Offset+i), base^(Offset+i+1)], where base is 2^(2^-Scale).
type Buckets struct {
	Scale  int32
	Offset int32
	Zero   uint64 // values that are 0
	Counts []uint64
}

// The scales of the library, which are those of OpenTelemetry's SDKs. At scale -10, the
// whole range of float64 fits in three buckets.
const (
	maxScale = 20
	minScale = -10
)

// exponential is a histogram whose bounds grow by a constant factor. It starts at the
// finest scale, and halves its resolution whenever the range of the values needs more
// than maxSize buckets.
type exponential struct {
	structure.Float64
	maxSize int
}

func newExponential(maxSize int) *exponential {
	e := &exponential{maxSize: maxSize}
	e.Init(structure.NewConfig(structure.WithMaxSize(int32(maxSize))))
	return e
}

func (e *exponential) clone() *exponential {
	c := newExponential(e.maxSize)
	e.CopyInto(&c.Float64)
	return c
}

func (e *exponential) buckets() Buckets {
	b := Buckets{Scale: maxScale, Zero: e.ZeroCount()}
	if list := e.Positive(); list.Len() > 0 {
		b.Scale, b.Offset, b.Counts = e.Scale(), list.Offset(), make([]uint64, list.Len())
		for i := range b.Counts {
			b.Counts[i] = list.At(uint32(i))
		}
	}
	return b
}

// restore adds the values of buckets to an empty histogram. The lowest and the highest
// value come first, so that the scale is the same.
func (e *exponential) restore(b Buckets) {
	if b.Zero > 0 {
		e.UpdateByIncr(0, b.Zero)
	}
	last := len(b.Counts) - 1
	if last > 0 {
		e.add(b, last)
	}
	for i := range max(last, 1) {
		if i < len(b.Counts) {
			e.add(b, i)
		}
	}
}

// add adds the values of a bucket, as if each were in the middle of it. It limits their
// number, because the library panics if a count overflows.
func (e *exponential) add(b Buckets, i int) {
	if b.Counts[i] > 0 {
		e.UpdateByIncr(b.middle(i), min(b.Counts[i], math.MaxInt64))
	}
}

// middle returns a value in the middle of a bucket.
func (b *Buckets) middle(i int) float64 {
	return math.Exp2(math.Ldexp(float64(int(b.Offset)+i)+0.5, -int(b.Scale)))
}
