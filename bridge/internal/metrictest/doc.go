// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrictest contains test helpers for the packages under bridge: a clock,
// access to collected metrics, and benchmarks that compare with the SDK.
package metrictest
