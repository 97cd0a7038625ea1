// Package metrictest helps the tests of the packages under bridge: a clock, the
// metrics that a reader collects, a backend that adds them up, and benchmarks
// against the SDK.
package metrictest
