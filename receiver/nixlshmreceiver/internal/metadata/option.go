// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package metadata is what mdatagen makes of metadata.yaml, and this file.
package metadata

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// With lets fn add to a resource that is emitted, and to its metrics, what the
// generated code has no function for.
func With(fn func(pcommon.Resource, pmetric.MetricSlice)) ResourceMetricsOption {
	return resourceMetricsOptionFunc(func(rm pmetric.ResourceMetrics) {
		fn(rm.Resource(), rm.ScopeMetrics().At(0).Metrics())
	})
}
