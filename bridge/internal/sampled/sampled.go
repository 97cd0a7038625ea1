// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package sampled selects the measurements that become exemplars, as the SDK does
// for its instruments.
package sampled

import (
	"context"
	"os"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// Filter selects measurements within a sampled span, or none.
type Filter struct{ off bool }

// Environment returns the filter that OTEL_METRICS_EXEMPLAR_FILTER selects: always_off, or
// otherwise trace_based, the default. It doesn't support always_on, because an exemplar
// without a span has no link to a trace.
func Environment() Filter {
	return Filter{off: strings.EqualFold(strings.TrimSpace(os.Getenv("OTEL_METRICS_EXEMPLAR_FILTER")), "always_off")}
}

// Span returns the span of ctx, and whether measurements within it become exemplars.
func (f Filter) Span(ctx context.Context) (s trace.SpanContext, ok bool) {
	if f.off {
		return s, false
	}
	s = trace.SpanContextFromContext(ctx)
	return s, s.IsSampled() && s.IsValid()
}
