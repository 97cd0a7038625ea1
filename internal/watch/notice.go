package watch

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
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

	lastKind = StoreSlow
)

// Notice tells something that an operator may want to know, once. It is about a
// directory, about one ring, or about several rings with the same cause.
type Notice struct {
	Kind  Kind
	Level slog.Level
	Path  string // of the ring or the directory; empty where it is about several
	Text  string // what happened and what to do, without the path
	Err   error  // nil where nothing is wrong
	Again int    // how often it has happened, without being told, since it was told
}

// String is the notice in one line.
func (n Notice) String() string {
	s := n.Message()
	if n.Err != nil {
		s = fmt.Sprintf("%s: %v", s, n.Err)
	}
	return s
}

// Message is the path and the text. Loggers that sample, as the Collector's
// does, drop what has the same message as others: with the path in it, what is
// said of one ring isn't dropped for what was said of another.
func (n Notice) Message() string {
	s := n.Text
	if n.Path != "" {
		s = readable(n.Path) + ": " + s
	}
	if n.Again > 0 {
		s = fmt.Sprintf("%s (and %d times more since that was last said)", s, n.Again)
	}
	return s
}

// readable quotes a path that isn't a word: its name is another's choice, and
// could otherwise begin a line of its own.
func readable(path string) string {
	odd := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
	if !utf8.ValidString(path) || strings.ContainsFunc(path, odd) {
		return strconv.Quote(path)
	}
	return path
}

// single says whether the notice is about one ring or file of many.
func (n Notice) single() bool {
	switch n.Kind {
	case DirectoryMissing, DirectoryFound, ScanCut, NotifyOff, RingLimit:
		return false
	default:
		return n.Path != ""
	}
}
