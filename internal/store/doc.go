// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package store reads the stores of NIXL's prometheus_mp exporter.
//
// With NIXL_TELEMETRY_EXPORTER=prometheus_mp an agent has no ring. Each of its
// processes keeps its totals in a file of its own, the store, which it locks for
// as long as it lives. Reading a store changes nothing in it, and takes nothing
// away from NIXL's own reader.
//
// An agent is the same as long as its directory, its host and its name are. Its
// totals are those of the processes that have exited, the base, plus those of the
// processes that run. A process counts once: when its lock is free, its store is
// read a last time, its values join the base, and the store is left alone from
// then on.
//
// A [Directory] does all of that for one directory, on a goroutine of its own. If
// the file system hangs, nothing else waits.
//
// # Checkpoints
//
// With a checkpoint.Saver, each collection stores the agents that have changed
// before their totals are exported: the base, the names of the stores that are in
// it, and the newest values of those that aren't. A store that is still there after a
// crash is read again, so a crash costs nothing then. If a store is gone by then,
// because its process exited and NIXL's own reader removed it, everything that its
// process counted after the last checkpoint is missing, and a notice reports it.
//
// # Reading order
//
//   - layout.go: the format
//   - agent.go: agents, their processes and totals
//   - checkpoint.go, save.go: the stored form, and when it is stored and loaded
//   - record.go, walk.go: the files of a directory, and which of them are refused
//   - collect.go, directory.go: collections, and the goroutine
package store
