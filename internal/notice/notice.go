// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package notice reports events to the operator as log lines. Each line states what
// happened and what to do. All log lines go through one [Reporter], which limits their number,
// even if an attacker can write to a ring directory.
package notice

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind is the kind of a [Notice].
type Kind uint8

// The kinds of notices.
const (
	DirectoryMissing  Kind = iota + 1 // a directory can't be read
	DirectoryFound                    // a directory can be read again
	DirectoryHangs                    // a call to a directory's file system doesn't return
	DirectoryCut                      // a directory has more entries than the limit
	PatternsUnmatched                 // include matches no file
	IdentityUnknown                   // a part of identify_by isn't known
	DirectoryOnDisk                   // rings are on a disk
	DiscoveryFailed                   // a source of directories can't be searched
	DiscoveryWorks                    // a source of directories can be searched again
	NotRing                           // a file isn't a ring
	RingOpened
	RingRefused   // a file can't be opened as a ring
	RingLimit     // there are more rings than allowed
	RingRestart   // an agent restarted
	RingReplaced  // another file has replaced a ring
	RingRetired   // a ring was closed because its agent exited
	RingForeign   // another consumer reads a ring
	RingFull      // a drain found a ring full
	EventsUnknown // an agent writes events of a type that isn't known
	RingLapped    // events were overwritten or truncated before they could be read
	RingBroken    // an open ring can no longer be read
	BudgetReached // a container, a pod or a directory uses all of its budget
	DrainHangs    // reading a ring doesn't return
	StreamLost    // totals of an agent were never exported
	LogsDropped   // log records of an agent were dropped

	// Of stores of NIXL's prometheus_mp exporter:

	MPStoreOpened
	MPStoreRefused // a file can't be read as a store

	CheckpointUnusable // an agent's totals start from zero
	StoreFailed        // checkpoints can't be stored
	StoreRecovered     // checkpoints can be stored again
	StoreHangs         // the store doesn't answer
	StoreSlow          // events were committed without a checkpoint because it took too long
	ExportUnsaved      // totals were exported before their checkpoint was stored
)

// Notice is a message to the operator about a directory, a ring or a file.
type Notice struct {
	Kind  Kind
	Level slog.Level
	Path  string // the subject; may be empty
	// Pod and Container are the UID and the ID of where the subject is; empty if unknown.
	Pod, Container string
	Text           string // what happened and what to do, without the path
	Err            error  // may be nil
}

// String returns the notice as one line.
func (n Notice) String() string {
	s := n.Message()
	if n.Err != nil {
		s = fmt.Sprintf("%s: %v", s, n.Err)
	}
	return s
}

// Message returns the path and the text. It includes the path because loggers with sampling,
// such as the Collector's, drop lines with the same message.
func (n Notice) Message() string {
	if n.Path == "" {
		return n.Text
	}
	return readable(n.Path) + ": " + n.Text
}

// readable quotes a path with spaces or unprintable characters. File names are untrusted and
// must not be able to inject a log line.
func readable(path string) string {
	odd := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
	if !utf8.ValidString(path) || strings.ContainsFunc(path, odd) {
		return strconv.Quote(path)
	}
	return path
}
