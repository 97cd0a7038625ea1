// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/expo"
)

// reported is what a collection reported with delta temporality, so that the
// next one can tell what is new.
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

// since notes a kernel's totals and latencies, returns what is new of the totals
// and since when, and leaves what is new of the latencies.
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

// errorsSince is since for a count of errors.
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

// extreme is a minimum or maximum, which is that since the kernel's creation and
// so isn't known of a delta.
func (c *collection) extreme(v float64) metricdata.Extrema[float64] {
	if c.after != nil {
		return metricdata.Extrema[float64]{}
	}
	return metricdata.NewExtrema(v)
}
