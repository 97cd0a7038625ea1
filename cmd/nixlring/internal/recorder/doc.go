// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package recorder records the rings of a directory in a file and replays them.
//
// A [Recorder] observes a directory and records the rings, the restarts of their agents, and
// every event that it sees, with the time at which it saw it. A [Player] reads the file and
// writes the same events to new rings. docs/recording.md describes the format.
package recorder
