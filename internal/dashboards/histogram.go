// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

import "strings"

// histogram is a histogram in any of the forms that backends store:
//
//   - Prometheus stores an explicit histogram as series with the label le, and an
//     exponential histogram as one native histogram with the metric's name.
//   - VictoriaMetrics stores an exponential histogram as series with the label vmrange,
//     which its histogram functions accept like le.
//
// An expression selects the series of buckets or, if there are none, the native histogram.
// VictoriaMetrics lacks histogram_sum and histogram_count, so no expression uses them.
type histogram struct {
	name     string // without _bucket
	matchers string // matchers in addition to those of the variables; may be empty
	foreign  bool   // whether another program exports it, so the variables don't apply
	// equal marks histograms whose values may all be equal, such as sizes of blocks.
	// VictoriaMetrics rounds the bounds of an exponential histogram to four digits, and
	// drops buckets whose bounds are then equal.
	equal bool
}

func (h histogram) rate(suffix string) string {
	selector := "{@}"
	switch {
	case h.foreign:
		selector = "{" + h.matchers + "}"
	case h.matchers != "":
		selector = "{@," + h.matchers + "}"
	}
	return "(rate(" + h.name + suffix + selector + "[@]))"
}

// buckets returns the rates of the buckets.
func (h histogram) buckets() string { return "sum by (le, vmrange) " + h.rate("_bucket") }

// native returns the rate of the native histogram.
func (h histogram) native(by string) string { return "sum " + grouped(by) + h.rate("") }

// quantile returns a quantile, by labels.
func (h histogram) quantile(phi, by string) string {
	buckets := "histogram_quantile(" + phi + ", sum " + grouped("le, vmrange", by) + h.rate("_bucket") + ")"
	native := "histogram_quantile(" + phi + ", " + h.native(by) + ")"
	if h.equal {
		return either(buckets, native, "sum "+grouped(by)+h.rate("_sum")+" / sum "+grouped(by)+h.rate("_count")) // the mean
	}
	return either(buckets, native)
}

// ratio returns the sum of a histogram divided by the sum of another histogram with the same
// number of observations.
func ratio(h, of histogram, by string) string {
	return either(
		"sum "+grouped(by)+h.rate("_sum")+" / sum "+grouped(by)+of.rate("_sum"),
		"histogram_avg("+h.native(by)+") / histogram_avg("+of.native(by)+")",
	)
}

// either returns the first expression that has series.
func either(exprs ...string) string { return "(" + strings.Join(exprs, " or ") + ")" }

// grouped returns the clause that keeps some labels.
func grouped(by ...string) string {
	labels := strings.Trim(strings.Join(by, ", "), ", ")
	if labels == "" {
		return ""
	}
	return "by (" + labels + ") "
}

// The histograms of NIXL agents.
var (
	transferTime  = histogram{name: "nixl_transfer_duration_seconds"}
	postTime      = histogram{name: "nixl_transfer_post_duration_seconds"}
	transferSize  = histogram{name: "nixl_transfer_size_bytes", equal: true}
	transferSpeed = histogram{name: "nixl_transfer_throughput_bytes_per_second"}
)
