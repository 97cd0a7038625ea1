package watch

import (
	"fmt"
	"log/slog"
)

// Kind is what a [Notice] is about.
type Kind uint8

// The kinds of notices.
const (
	DirectoryMissing Kind = iota + 1 // a directory can't be read
	DirectoryFound                   // it can again
	ScanCut                          // a directory has more entries than are looked at
	NotifyOff                        // inotify doesn't work; new rings are found each few seconds
	NotRings                         // a directory holds files that aren't rings
	RingOpened
	RingRefused  // a file can't be opened as a ring
	RingLimit    // there are more rings than allowed
	RingRestart  // an agent started anew
	RingReplaced // another file has taken a ring's name
	RingRemoved  // a ring's file was removed
	RingRetired  // a ring is closed, as its agent is gone
	RingForeign  // somebody else takes events from a ring
	RingFull     // a drain found a ring full
	RingBroken   // an open ring can't be read any more
	StoreFailed  // checkpoints can't be stored or read
	StoreSlow    // events were committed without a checkpoint, as it took too long
)

// Notice tells something that an operator may want to know, once.
type Notice struct {
	Kind  Kind
	Level slog.Level
	Path  string // of the ring or the directory
	Text  string // what happened and what to do, without the path
	Err   error  // nil where nothing is wrong
}

// String is the notice in one line.
func (n Notice) String() string {
	s := n.Text
	if n.Path != "" {
		s = n.Path + ": " + s
	}
	if n.Err != nil {
		s = fmt.Sprintf("%s: %v", s, n.Err)
	}
	return s
}
