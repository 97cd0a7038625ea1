// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the built Collector, nixlring and `make run` as processes, with real ring files.
//
// `make e2e` builds the programs and runs the tests. To run them by hand:
//
//	OTELCOL_NIXL=$PWD/dist/otelcol-nixl go -C test test ./e2e/...
//
// Without this variable, the tests are skipped, or fail if CI=true.
//
// The tests of the samples for many hosts, TestScale…, need the full Collector. `make validate` builds
// it and sets OTELCOL_NIXL_FULL. Without this variable, the tests are skipped.
//
// The tests use the sample configurations in examples/collector. Each test adds a second configuration
// with its files, ports and intervals.
package e2e
