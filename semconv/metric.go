// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package semconv

// Kind is the kind of instrument a metric is reported with.
type Kind uint8

// The kinds, by OpenTelemetry's names for them.
const (
	Counter       Kind = iota + 1 // a monotonic, cumulative sum
	UpDownCounter                 // a sum that may go down
	Gauge                         // the newest of several values
	Histogram                     // a distribution, with count, sum, min and max
)

// String is the kind as the catalog's documentation writes it.
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

// The number types. Histograms record Float64 whatever they measure, as their
// sums are floating point in OTLP.
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
	// Attributes are the keys that a data point carries, in order. A key in
	// Conditional is there only where its condition holds.
	Attributes  []string
	Conditional []string
	// Derived metrics repeat what others say and are off by default.
	Derived bool
}
