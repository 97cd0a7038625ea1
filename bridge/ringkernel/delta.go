// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/expo"
)

// reported holds the totals at a collection with delta temporality. The next
// collection reports the difference.
type reported struct {
	at      time.Time
	kernels map[*Kernel]reportedKernel
	errors  map[*errorCount]int64
}

type reportedKernel struct {
	totals    totals
	latencies expo.Mark
}

func newReported(at time.Time) *reported {
	return &reported{at: at, kernels: make(map[*Kernel]reportedKernel), errors: make(map[*errorCount]int64)}
}

// since saves a kernel's totals and latencies for the next collection. It returns
// the delta of the totals and its start time, and reduces c.latencies to the
// delta.
func (c *collection) since(k *Kernel, t *totals) (fresh totals, began time.Time) {
	c.after.kernels[k] = reportedKernel{*t, c.latencies.Mark()}
	if c.before == nil {
		return *t, k.created
	}
	old, ok := c.before.kernels[k]
	if !ok {
		return *t, k.created
	}
	c.latencies.Subtract(&old.latencies)
	return t.minus(&old.totals), c.before.at
}

// errorsSince is like since, for one error type.
func (c *collection) errorsSince(e *errorCount) int64 {
	if c.after == nil {
		return e.n
	}
	c.after.errors[e] = e.n
	if c.before == nil {
		return e.n
	}
	return e.n - c.before.errors[e]
}

func (c *collection) temporality() metricdata.Temporality {
	if c.after != nil {
		return metricdata.DeltaTemporality
	}
	return metricdata.CumulativeTemporality
}

// extreme returns a minimum or maximum. It is undefined for deltas, because v covers
// the time since the kernel's creation.
func (c *collection) extreme(v float64) metricdata.Extrema[float64] {
	if c.after != nil {
		return metricdata.Extrema[float64]{}
	}
	return metricdata.NewExtrema(v)
}
