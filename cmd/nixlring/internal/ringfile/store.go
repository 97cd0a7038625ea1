// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/mpstore"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Store describes the process of an agent that writes a store of NIXL's prometheus_mp exporter.
type Store struct {
	Agent     string    `json:"agent"`
	PID       int64     `json:"pid"` // in the process's own PID namespace
	Instance  uint64    `json:"instance"`
	Host      string    `json:"host"`
	LocalRank string    `json:"local_rank,omitempty"`
	Start     time.Time `json:"start"`
}

// Totals are the values in a store.
type Totals struct {
	Transmit     Moved            `json:"transmit"`
	Receive      Moved            `json:"receive"`
	Registered   int64            `json:"memory_registered_bytes"`
	Deregistered int64            `json:"memory_deregistered_bytes"`
	Transfers    Durations        `json:"transfer_time"`
	Posts        Durations        `json:"post_time"`
	Errors       map[string]int64 `json:"errors"` // by status; without zeros
	Dropped      int64            `json:"events_dropped"`
}

// Moved is what completed transfers moved in one direction.
type Moved struct {
	Bytes    int64 `json:"bytes"`
	Requests int64 `json:"requests"`
}

// Durations are the number and the sum of durations.
type Durations struct {
	Count uint64  `json:"count"`
	Sum   float64 `json:"sum_seconds"`

	histogram *tally.Histogram
}

// readStore reads the file as a store. It never waits for the lock on the store.
func (r *Report) readStore() error {
	if err := r.openStore(filepath.Split(string(r.Path))); err != nil {
		return fmt.Errorf("read store %s: %w", r.Path, err)
	}
	return nil
}

func (r *Report) openStore(dir, name string) (err error) {
	in, err := files.OpenDir(filepath.Clean(dir), ".")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	file, err := in.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return err
	}
	s, err := mpstore.Open(file, name, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	running := answer(s.Running()) // first, to read the final values of a process that has exited
	totals, err := s.Read(false)
	if err != nil {
		return err
	}
	r.Layout, r.InUse = semconv.LayoutStore, running
	r.Store = &Store{
		Agent: units.Text(s.Agent), PID: s.PID, Instance: s.Instance, Host: units.Text(s.Host), LocalRank: units.Text(s.LocalRank), Start: s.Start,
	}
	r.Totals = newTotals(totals)
	return nil
}

func newTotals(t *tally.Totals) *Totals {
	moved := func(d tally.Direction) Moved { return Moved{t.Size(d).Total().Int64(), t.Requests(d).Sum.Int64()} }
	durations := func(h *tally.Histogram) Durations { return Durations{h.Count(), h.Sum(), h} }
	all := &Totals{
		Transmit: moved(tally.Transmit), Receive: moved(tally.Receive),
		Registered: t.Registered().Sum.Int64(), Deregistered: t.Deregistered().Sum.Int64(),
		Transfers: durations(t.Duration()), Posts: durations(t.PostDuration()),
		Errors: make(map[string]int64), Dropped: t.Dropped().Sum.Int64(),
	}
	for kind := ringbuf.TypeErrNotPosted; kind <= ringbuf.TypeErrNoTelemetry; kind++ {
		if n := t.Errors(kind).Sum.Int64(); n > 0 {
			all.Errors[status(kind)] = n
		}
	}
	return all
}

func status(kind ringbuf.Type) string { return strings.TrimPrefix(kind.String(), "agent_err_") }

func (r *Report) noteStore() {
	agent := fmt.Sprintf("agent %s on %s", r.Store.Agent, r.Store.Host)
	if r.Store.LocalRank != "" {
		agent += ", local rank " + r.Store.LocalRank
	}
	r.Notes = append(r.Notes, agent)
	if r.InUse == No {
		r.Notes = append(r.Notes, "process exited")
	}
}

// errorText lists the errors by status, in the order of NIXL's statuses.
func (t *Totals) errorText() string {
	var list []string
	for kind := ringbuf.TypeErrNotPosted; kind <= ringbuf.TypeErrNoTelemetry; kind++ {
		if n := t.Errors[status(kind)]; n > 0 {
			list = append(list, fmt.Sprintf("%s %s", status(kind), units.Count(uint64(n))))
		}
	}
	if list == nil {
		return "none"
	}
	return strings.Join(list, ", ")
}

func (m Moved) String() string {
	return fmt.Sprintf("%s in %s requests", units.Bytes(uint64(m.Bytes)), units.Count(uint64(m.Requests)))
}

// String returns the number, the mean, and the bounds of the bucket of the longest one.
func (d *Durations) String() string {
	if d.Count == 0 {
		return "none"
	}
	text := fmt.Sprintf("%s, on average %s", units.Count(d.Count), units.Duration(d.Sum/float64(d.Count)))
	bounds, counts := d.histogram.Bounds(), d.histogram.Counts()
	bound := func(i int) string { return units.Bare(units.Duration(bounds[i])) }
	for i, n := range slices.Backward(counts) {
		switch {
		case n == 0:
		case i < len(bounds):
			return text + ", at most " + bound(i)
		default:
			return text + ", the longest over " + bound(i-1)
		}
	}
	return text
}
