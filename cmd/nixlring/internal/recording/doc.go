// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package recording records the rings of a directory in a file and replays them.
//
// A [Recorder] observes a directory and writes, with a [Writer], the rings, the restarts of
// their agents, and every event that it sees, with the time at which it saw it. A [Player]
// reads the file with a [Reader] and writes the same events to new rings. The format is
// described in docs/recording.md.
//
// A file consists of frames, which are compressed separately. If the recording program
// crashes, the file can be read up to the last complete frame: at most the last second is
// lost. A Reader treats files as untrusted input: its memory is bounded, and names can't
// refer to paths outside of the Player's directory.
package recording
