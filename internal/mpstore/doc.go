// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package mpstore decodes the stores of NIXL's prometheus_mp exporter.
//
// With NIXL_TELEMETRY_EXPORTER=prometheus_mp, an agent has no ring. Each of its processes
// keeps its totals in a separate file, the store, and holds a lock on it until the process
// exits. Reading a store doesn't modify it, and doesn't affect NIXL's own reader.
//
// A store is read with pread. Unlike mapped memory, a truncated file then causes an error
// instead of a crash.
//
// # Reading order
//
//   - name.go: the names of stores, and of other files in their directory
//   - layout.go: the format
//   - store.go: an open store
package mpstore
