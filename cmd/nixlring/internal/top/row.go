// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/units"
)

// Reader is who takes events from a ring, as far as an observer can tell.
type Reader uint8

// The readers.
const (
	Unknown Reader = iota // the ring was empty all the time
	Locked                // a consumer of this project, such as the Collector
	Stalled               // the same, but it takes nothing
	Foreign               // somebody who holds no lock on the ring
	Nobody                // the ring fills up
)

// Row is one agent, as it is shown. Rates and quantiles are those of the
// window.
type Row struct {
	Reading
	Out, In           float64 // bytes/s
	Transfers, Errors float64 // per second
	P50, P99          float64 // transfer time in seconds; NaN if there was none
	PostP50, PostP99  float64 // post time
	// ThroughputP10 and ThroughputP50 are quantiles of the transfers' throughput in
	// bytes/s: a tenth and half of the transfers are slower. NaN if there was none.
	ThroughputP10, ThroughputP50 float64
	// Peers is the median of ThroughputP50 of the agents in the same directory. It is
	// NaN if there are too few to compare with.
	Peers     float64
	Straggler bool    // far slower than its peers
	Fill      float64 // 0 to 1: the ring's peak since the sample before
	Age       time.Duration
	Older     bool // no event came since the agent was first seen, Age ago
	Reader    Reader
	Window    Totals // what the window added
	Since     Totals // what was added since the agent was first seen
	Problems  []Problem

	events float64 // per second
}

// Severity is how bad a problem is.
type Severity uint8

// The severities.
const (
	Info Severity = iota + 1
	Warn          // something may be lost, or was
	Bad           // something is being lost, or fails
)

// Problem is something to look at.
type Problem struct {
	Severity Severity
	Text     string // a few words
}

// Worst is the severity of the worst problem, 0 if there is none.
func (r *Row) Worst() Severity {
	var worst Severity
	for _, p := range r.Problems {
		worst = max(worst, p.Severity)
	}
	return worst
}

// Failing says whether so many operations end in an error that it is a problem
// by itself: at least one in a hundred.
func (r *Row) Failing() bool {
	const share = 100
	return r.Window.Errors > 0 && r.Window.Errors*share >= r.Window.Errors+r.Window.Transfers
}

// ReaderName is who takes events from the ring, in a word or two; empty if
// that isn't known.
func (r *Row) ReaderName() string {
	switch r.Reader {
	case Locked, Stalled:
		if r.Lock.Name != "" {
			return r.Lock.Name
		}
		return "pid " + strconv.Itoa(r.Lock.PID)
	case Foreign:
		return "foreign"
	case Nobody:
		return "nobody"
	default:
		return ""
	}
}

// problems returns what is wrong with an agent or its ring, the worst first.
func (r *Row) problems() (list []Problem) {
	add := func(s Severity, format string, args ...any) {
		list = append(list, Problem{s, fmt.Sprintf(format, args...)})
	}
	r.readerProblems(add)
	w, s := &r.Window, &r.Since
	lost := func(now, ever uint64, format string) {
		switch {
		case now > 0:
			add(Bad, format, units.Count(ever))
		case ever > 0:
			add(Warn, format, units.Count(ever))
		}
	}
	if r.Reader != Nobody { // else it is full by itself, and nothing more follows
		lost(w.Saturations, s.Saturations, "full %s×")
	}
	lost(w.Torn, s.Torn, "%s torn")
	lost(w.Dropped, s.Dropped, "%s dropped")
	if r.Reader == Foreign {
		add(Warn, "foreign reader")
	}
	if r.Failing() {
		add(Bad, "%.0f%% fail", 100*float64(w.Errors)/float64(w.Errors+w.Transfers))
	}
	if r.Straggler {
		add(Warn, "straggler: %.0f%% of peers", 100*r.ThroughputP50/r.Peers)
	}
	if w.Missed > 0 {
		add(Warn, "not all seen")
	}
	if w.Restarts > 0 {
		add(Info, "restarted")
	}
	if r.Alive == procs.No {
		add(Info, "agent has exited")
	}
	slices.SortStableFunc(list, func(a, b Problem) int { return cmp.Compare(b.Severity, a.Severity) })
	return list
}

// readerProblems are those of a ring from which nobody takes events.
func (r *Row) readerProblems(add func(s Severity, format string, args ...any)) {
	if r.Alive == procs.No || r.Reader != Nobody && r.Reader != Stalled {
		return
	}
	who := "unread"
	if r.Reader == Stalled {
		who = r.ReaderName() + " stalls"
	}
	room := float64(max(r.Capacity-1, 0) - r.Peak)
	switch {
	case room <= 0:
		add(Bad, "full, %s", who)
	case r.events > 0:
		add(Warn, "%s, full in %s", who, units.Age(time.Duration(room/r.events*float64(time.Second))))
	case r.Reader == Nobody:
		add(Info, "%s", who)
	}
}
