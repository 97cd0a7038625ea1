// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package bench measures what takes more than one process: rings between Go
// and C++, and the built Collector under load. It has benchmarks only; what
// measures one package stands beside it. Report runs them all and judges.
//
// Those against C++ need a compiler, $CXX or g++, and those of the Collector a
// built one, named by OTELCOL_NIXL. Without them they are skipped.
package bench
