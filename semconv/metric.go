// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package semconv

// Kind is the kind of instrument that records a metric.
type Kind uint8

// OpenTelemetry's kinds of instruments.
const (
	Counter       Kind = iota + 1 // a monotonic, cumulative sum
	UpDownCounter                 // a cumulative sum that can decrease
	Gauge                         // the newest of several values
	Histogram                     // a distribution, with count, sum, min and max
)

// String returns the kind in words, as in docs/metrics.md.
func (k Kind) String() string {
	switch k {
	case Counter:
		return "counter"
	case UpDownCounter:
		return "up-down counter"
	case Gauge:
		return "gauge"
	case Histogram:
		return "histogram"
	default:
		return "unknown kind"
	}
}

// Number is the type of a metric's values.
type Number uint8

// The number types. Histograms are always Float64, because OTLP defines their
// sums as floating-point numbers.
const (
	Int64 Number = iota + 1
	Float64
)

// Metric describes one metric of the catalog.
type Metric struct {
	Name        string
	Kind        Kind
	Number      Number
	Unit        string // UCUM
	Description string
	Note        string // what Description leaves out, as Markdown
	// Attributes are the keys of every data point, in order. Conditional are the
	// keys that a data point may have; see [Attribute].
	Attributes  []string
	Conditional []string
	// Bounds are the default upper bounds of the buckets of a histogram, in its unit. A value
	// belongs to the first bucket whose bound it doesn't exceed. Callers must not change them.
	Bounds []float64
	// OptIn reports whether the receiver reports the metric only on request.
	OptIn bool
}
