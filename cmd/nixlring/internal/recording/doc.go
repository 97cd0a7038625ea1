// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package recording keeps what happened on the rings of a directory in one
// file, and plays it back as rings.
//
// A [Recorder] observes a directory and writes, with a [Writer], which rings
// there were, when each life of an agent began, and every event it could see,
// with the time at which it saw it. A [Player] reads that with a [Reader] and
// does the same to rings of its own. The format is in docs/recording.md.
//
// The file is a run of frames that are compressed each by itself. A program
// that dies leaves a file that is readable up to the last whole frame, at most
// a second before its end. Nothing in a file is believed: a Reader's memory is
// bounded, and a name leads nowhere but into the directory of a Player.
package recording
