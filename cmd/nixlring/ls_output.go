// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/listing"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// listed is a file in the JSON output of nixlring ls. The fields of rings and of
// stores are empty for other files.
type listed struct {
	Path     string    `json:"path"`
	Ring     bool      `json:"ring"`
	Layout   string    `json:"layout,omitempty"`
	Capacity int       `json:"capacity,omitempty"` // slots
	Pending  *int      `json:"pending,omitempty"`  // events
	Fill     *float64  `json:"fill,omitempty"`     // 0 to 1
	Agent    string    `json:"agent,omitempty"`    // of a store, as are the next three
	PID      int64     `json:"pid,omitempty"`      // in the process's own PID namespace
	Host     string    `json:"host,omitempty"`
	Rank     string    `json:"local_rank,omitempty"`
	Alive    *bool     `json:"agent_alive"` // null if unknown, or if the file is neither a ring nor a store
	Owner    uint32    `json:"owner_uid"`
	Modified time.Time `json:"modified"`
	Age      float64   `json:"age_seconds"`
	Problem  string    `json:"problem,omitempty"`
	Notes    []string  `json:"notes,omitempty"`
}

func newListed(e *listing.Entry, now time.Time) listed {
	l := listed{
		Path: units.Text(e.Path), Ring: e.Ring, Owner: e.Owner, Problem: e.Reason(), Notes: e.Notes(os.Geteuid()),
		Modified: e.Modified, Age: now.Sub(e.Modified).Round(time.Millisecond).Seconds(),
	}
	if e.Ring {
		fill := e.Fill()
		l.Layout, l.Capacity, l.Pending, l.Fill = e.Layout.String(), e.Capacity, &e.Pending, &fill
	}
	if s := e.Store; s != nil {
		l.Layout, l.Agent, l.PID, l.Host, l.Rank = semconv.LayoutStore, units.Text(s.Agent), s.PID, units.Text(s.Host), units.Text(s.LocalRank)
	}
	l.Alive = e.Alive.Bool()
	return l
}

func writeListJSON(w io.Writer, list []listing.Entry, now time.Time) error {
	all := make([]listed, len(list)) // never null
	for i := range list {
		all[i] = newListed(&list[i], now)
	}
	return writeJSON(w, all)
}

// note returns why a file can't be read, or the notes on a ring or store.
func note(e *listing.Entry) string {
	if e.Err != nil {
		return e.Reason()
	}
	return strings.Join(e.Notes(os.Geteuid()), "; ")
}

func writeListText(w io.Writer, list []listing.Entry, now time.Time) error {
	t := newTable("PATH", "LAYOUT", ">CAPACITY", ">PENDING", ">FILL", "ALIVE", ">OWNER", ">AGE", "NOTES")
	for i := range list {
		e := &list[i]
		layout, capacity, pending, fill, alive := "-", "-", "-", "-", "-"
		if e.Ring {
			layout, capacity, pending = e.Layout.String(), strconv.Itoa(e.Capacity), strconv.Itoa(e.Pending)
			fill, alive = fmt.Sprintf("%.0f%%", 100*e.Fill()), e.Alive.String()
		}
		if e.Store != nil {
			layout, alive = semconv.LayoutStore, e.Alive.String()
		}
		t.add(units.Printable(e.Path), layout, capacity, pending, fill, alive,
			strconv.FormatUint(uint64(e.Owner), 10), units.Age(now.Sub(e.Modified)), units.Printable(note(e)))
	}
	return t.write(w)
}
