// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package recording reads and writes recordings: files with the events of agents, and the time
// at which each was read. docs/recording.md describes the format, JSON lines that are
// compressed with zstd. A [Recorder] records the rings of a directory, and a [Player] writes the rings again.
//
// A [Reader] treats its input as untrusted: its memory is bounded, and names can't refer to paths outside of
// a directory.
package recording

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Version is the version of the format.
const Version = 1

// format identifies recordings among other JSON lines.
const format = "nixl-recording"

// window is how far compression looks back, in bytes. A reader needs as much memory.
const window = 1 << 20

// MaxAgents is the maximum number of agents in a recording.
const MaxAgents = 1 << 13

// Limits of a [Reader]. A [Writer] stays within them.
const (
	maxWindow = 8 << 20  // bytes that decompression looks back
	maxLine   = 1 << 20  // bytes
	maxAbout  = 64 << 20 // bytes of the lines that describe agents
	maxString = 1 << 12  // bytes of a string, before it is encoded
	maxEvents = 1 << 11  // events in a line
)

// Errors of reading a recording.
var (
	// ErrFormat means that a file isn't a recording.
	ErrFormat = errors.New("not a recording")
	// ErrVersion means that a recording has an unknown version.
	ErrVersion = errors.New("recording of an unknown version")
	// ErrTruncated means that a recording has no end: the recording program crashed, or
	// is still running. The records before are valid.
	ErrTruncated = errors.New("truncated recording")
	// ErrDamaged means that the content of a recording is invalid.
	ErrDamaged = errors.New("damaged recording")
)

// Header is the first line of a recording.
type Header struct {
	Format    string    `json:"format"`  // set by the Writer
	Version   int       `json:"version"` // likewise
	Tool      string    `json:"tool"`    // that wrote the recording, and its version
	Host      string    `json:"host"`
	Directory string    `json:"directory,omitempty"` // that was recorded, if it was one
	Start     time.Time `json:"start"`
}

// About is what is known about an agent.
type About struct {
	Name       string            `json:"name,omitempty"` // path within its directory
	Path       string            `json:"path,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
}

// State is a change of the state of an agent's ring.
type State string

// The states.
const (
	Opened State = "opened" // the ring was opened, or opened again after a restart of its agent
	Missed State = "missed" // events may be missing from the recording here
	Full   State = "full"   // the ring was full, so its agent has most likely dropped events
	Closed State = "closed" // the ring was closed, or its agent exited
)

// Record is a line of a recording, except for the header: events, a change of the state of a ring, or only
// a time.
type Record struct {
	At     time.Time
	Agent  int   // number of the agent, in the order in which agents appear; -1 for only a time
	State  State // empty for events
	Events []ringbuf.Event

	About    *About         // of the agent
	Layout   ringbuf.Layout // of its ring
	Capacity int            // slots of its ring
}

// line is a record as it is written.
type line struct {
	Micros   int64  `json:"time_us"` // since the epoch
	Agent    int    `json:"agent"`
	State    State  `json:"state,omitempty"`
	Layout   string `json:"layout,omitempty"`
	Capacity uint64 `json:"capacity,omitempty"`
	About
	Events []event `json:"events,omitempty"`
}

// mark is a line with only a time.
type mark struct {
	Micros int64 `json:"time_us"`
}

// event is an event as it is written.
type event struct {
	Timestamp uint64 `json:"timestamp_us,omitempty"` // of a slot of layout V1
	Category  string `json:"category"`               // as that of the metrics
	Name      string `json:"event_name"`
	Value     uint64 `json:"value"`
}

func newEvent(l ringbuf.Layout, e *ringbuf.Event) event {
	out := event{Timestamp: e.TimestampMicros, Category: tally.CategoryName(e.Category), Name: l.TypeName(e.Type), Value: e.Value}
	switch {
	case e.Named:
		out.Name = clean(e.Name.String())
	case l.Knows(e.Type) && l != ringbuf.V2: // slots of V2 contain the category
		out.Category = tally.TypeCategory(e.Type)
	}
	return out
}

// event is the reverse of newEvent.
func (in *event) event(l ringbuf.Layout) (e ringbuf.Event, err error) {
	e.Category, e.Value = -1, in.Value
	for c := range ringbuf.Category(ringbuf.Categories) {
		if tally.CategoryName(c) == in.Category {
			e.Category = c
		}
	}
	if l.Named() {
		e.Named, e.Name, e.TimestampMicros = true, ringbuf.MakeName(in.Name), in.Timestamp
		return e, nil
	}
	var ok bool
	if e.Type, ok = tally.ParseTypeName(in.Name); !ok {
		return e, fmt.Errorf("no event of layout %v is named %q", l, in.Name)
	}
	if l != ringbuf.V2 {
		e.Category = -1
		if l.Knows(e.Type) {
			e.Category = e.Type.Category()
		}
	}
	return e, nil
}

// clean replaces what JSON can't represent, and limits the length.
func clean(s string) string {
	s = units.Text(s)
	return strings.ToValidUTF8(s[:min(len(s), maxString)], "\uFFFD")
}
