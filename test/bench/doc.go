// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package bench has the benchmarks that need several processes: rings between Go
// and C++, and the built Collector under load. It also compares the packages under
// bridge with the SDK and with client_golang. Other benchmarks of one package are in
// that package. The command report runs all of them and compares the results with
// the goals.
//
// Benchmarks with C++ programs need a compiler, $CXX or g++. Benchmarks of the
// Collector need OTELCOL_NIXL, the path of a built one. Otherwise they are skipped.
package bench
