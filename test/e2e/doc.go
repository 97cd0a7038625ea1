// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e has no code of its own, only tests: of the built Collector, of
// nixlring and of `make run`, as processes, on rings that are files. Everything
// below those is tested where it lives.
//
// `make e2e` builds what is needed and runs them. By hand:
//
//	OTELCOL_NIXL=$PWD/dist/otelcol-nixl go -C test test ./e2e/...
//
// Without the variable they are skipped; where CI=true is set, that is an
// error. The live test simulates for NIXL_E2E_LIVE (a duration, 30s), and with
// -short for a third of it.
//
// The tests of the samples for many hosts, TestScale…, take another Collector
// and brokers that speak Kafka's protocol. `make scale-test` builds those and
// names them by OTELCOL_NIXL_FULL and KFAKE; without those variables the tests
// are skipped.
//
// The sample configurations in examples/collector are what the tests run. A
// test adds to them by a second configuration that names its files, ports and
// intervals.
package e2e
