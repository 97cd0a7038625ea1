// Package metadata is what mdatagen makes of metadata.yaml, and this file.
package metadata

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// WithOwnResource is WithResource for a resource that nobody else has: it isn't
// copied.
func WithOwnResource(res pcommon.Resource) ResourceMetricsOption {
	return resourceMetricsOptionFunc(func(rm pmetric.ResourceMetrics) { res.MoveTo(rm.Resource()) })
}

// WithMetrics lets fn add to the metrics of the resource that is emitted, what
// the generated code has no function for.
func WithMetrics(fn func(pmetric.MetricSlice)) ResourceMetricsOption {
	return resourceMetricsOptionFunc(func(rm pmetric.ResourceMetrics) {
		fn(rm.ScopeMetrics().At(0).Metrics())
	})
}
