// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package store reads the stores of NIXL's prometheus_mp exporter.
//
// With NIXL_TELEMETRY_EXPORTER=prometheus_mp, an agent has no ring. Each of its
// processes keeps its totals in a separate file, the store, and holds a lock on it
// until the process exits. Reading a store doesn't modify it, and doesn't affect NIXL's
// own reader.
//
// An agent is identified by its directory, its host and its name. Its totals are the
// sum of the exited processes, called the base, plus the values of the running
// processes. When the lock of a store is released, the process has exited: its store is
// read one last time, its values are added to the base, and the store is ignored from
// then on. So each process is counted once.
//
// A [Directory] reads the stores in one directory, on its own goroutine. If the file
// system hangs, only this directory is affected. It searches for new stores and exited
// processes every 2 seconds. A collection reads only the values.
//
// # Checkpoints
//
// With a checkpoint.Saver, each collection saves a checkpoint of every changed agent
// before its totals are exported: the base, the names of the stores in it, and the
// latest values of the other stores. After a crash, the stores are read again, so no
// event is lost. The exception is a store that NIXL's own reader removed after its
// process exited: events counted after the last checkpoint are missing from the totals,
// and a notice reports that.
//
// # Reading order
//
//   - layout.go: the format
//   - file.go: reading one store, for tools
//   - agent.go: agents, their processes and totals
//   - checkpoint.go, save.go: the format of checkpoints, saving and loading
//   - record.go, walk.go: the files in a directory, and why files are refused
//   - collect.go, directory.go: collections, and the goroutine
package store
