// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrictest helps the tests of the packages under bridge: a clock, the
// metrics that a reader collects, and benchmarks against the SDK.
package metrictest
