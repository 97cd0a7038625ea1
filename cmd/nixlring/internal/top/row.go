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
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// Reader is who takes events from a ring, as seen by an observer.
type Reader uint8

// The readers.
const (
	Unknown Reader = iota // the ring was empty all the time
	Locked                // a consumer of this project, such as the Collector
	Stalled               // a consumer of this project that takes no events
	Foreign               // a program that doesn't lock the ring
	Nobody                // events stay in the ring
	Hidden                // a program that can't be found; it may be a consumer of this project
)

// Row is one agent for display. Rates and quantiles cover the window.
type Row struct {
	Reading
	Out, In           float64 // bytes/s
	Transfers, Errors float64 // per second
	P50, P99          float64 // transfer time in seconds; NaN without transfers
	PostP50, PostP99  float64 // post time
	// ThroughputP10 and ThroughputP50 are quantiles of the throughput of single transfers in
	// bytes/s: a tenth and half of the transfers are slower. They are NaN without transfers.
	ThroughputP10, ThroughputP50 float64
	Speed                        float64            // bytes per second of transfer time; NaN without transfers
	Findings                     []diagnose.Finding // about its transfers
	Fill                         float64            // peak of the ring since the previous sample, 0 to 1
	Age                          time.Duration      // since the last event, or with NoEvents since the agent was first seen
	NoEvents                     bool               // no event was written since the agent was first seen
	Reader                       Reader
	Window                       Totals // difference over the window
	Since                        Totals // difference since the agent was first seen
	Problems                     []Problem

	events float64 // per second
}

// Severity is the severity of a problem.
type Severity uint8

// The severities.
const (
	Info Severity = iota + 1
	Warn          // events were lost or may be lost
	Bad           // events are being lost, or operations fail
)

// Problem is a problem of an agent or its ring.
type Problem struct {
	Severity Severity
	Text     string // a few words
}

// Worst returns the highest severity of the problems, or 0 without problems.
func (r *Row) Worst() Severity {
	var worst Severity
	for _, p := range r.Problems {
		worst = max(worst, p.Severity)
	}
	return worst
}

// Failing reports whether at least one in a hundred operations fails.
func (r *Row) Failing() bool {
	const share = 100
	return r.Window.Errors > 0 && r.Window.Errors*share >= r.Window.Errors+r.Window.Transfers
}

// ReaderName returns a short name of the program that takes events from the ring. It is empty
// if the program is unknown.
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
	case Hidden:
		return "unknown"
	default:
		return ""
	}
}

// problems returns the problems of an agent and its ring, the worst first.
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
	if r.Reader != Nobody { // readerProblems covers a full ring that nobody reads
		lost(w.Saturations, s.Saturations, "full %s×")
	}
	lost(w.Torn, s.Torn, "%s torn")
	lost(w.Dropped, s.Dropped, "%s dropped")
	if r.Reader == Foreign || w.Foreign > 0 {
		add(Warn, "foreign reader")
	}
	if r.Failing() {
		add(Bad, "%.0f%% fail", 100*float64(w.Errors)/float64(w.Errors+w.Transfers))
	}
	for i := range r.Findings {
		add(severityOf(r.Findings[i].Severity), "%s", r.Findings[i].Short)
	}
	if w.Missed > 0 {
		add(Warn, "missed events")
	}
	if w.Restarts > 0 {
		add(Info, "restarted")
	}
	if r.Alive == procs.No {
		add(Info, "agent exited")
	}
	slices.SortStableFunc(list, func(a, b Problem) int { return cmp.Compare(b.Severity, a.Severity) })
	return list
}

// readerProblems adds the problem of a ring from which nobody takes events.
func (r *Row) readerProblems(add func(s Severity, format string, args ...any)) {
	if r.Alive == procs.No || r.Reader != Nobody && r.Reader != Stalled {
		return
	}
	who := "unread"
	if r.Reader == Stalled {
		who = r.ReaderName() + " stalls"
	}
	room := r.room()
	switch {
	case room <= 0:
		add(Bad, "full, %s", who)
	case r.events > 0:
		add(Warn, "%s, full in %s", who, units.Age(time.Duration(room/r.events*float64(time.Second))))
	case r.Reader == Nobody:
		add(Info, "%s", who)
	}
}
