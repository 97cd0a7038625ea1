// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/mpstore"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Store is the content of a store of NIXL's prometheus_mp exporter: one process of an
// agent, and its totals.
type Store struct {
	Layout    string    `json:"layout"`
	Agent     string    `json:"agent"`
	PID       int64     `json:"pid"` // in the process's own PID namespace
	Instance  uint64    `json:"instance"`
	Host      string    `json:"host"`
	LocalRank string    `json:"local_rank,omitempty"`
	Start     time.Time `json:"start"`

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

// Durations is a histogram.
type Durations struct {
	Count  uint64    `json:"count"`
	Sum    float64   `json:"sum_seconds"`
	Bounds []float64 `json:"bounds_seconds,omitempty"` // upper bounds
	Counts []uint64  `json:"counts,omitempty"`         // one more than bounds
}

// named reports whether the file has the name of a store. Then the Collector doesn't read it
// as a ring.
func (r *Report) named() bool { return mpstore.IsName(filepath.Base(r.Path)) }

// readStore reads the file as a store.
func (r *Report) readStore() error {
	f, err := procs.ReadStore(r.Path)
	if err != nil {
		r.Error = reason(err)
		return err
	}
	r.Store = &Store{
		Layout: semconv.LayoutStore,
		Agent:  f.Agent, PID: f.PID, Instance: f.Instance, Host: f.Host, LocalRank: f.LocalRank, Start: f.Start,
		Errors: make(map[string]int64),
	}
	r.Store.count(f.Totals)
	r.idle = idle(f)
	r.alive = f.Alive
	r.Alive = r.alive.Bool()
	return nil
}

// idle returns how long ago a store was updated, or a negative number if that was before the
// machine was started.
func idle(f *procs.Store) time.Duration {
	uptime, err := files.Uptime()
	if err != nil {
		return 0
	}
	if d, known := f.Idle(uptime); known {
		return max(d, 0)
	}
	return -1
}

func (s *Store) count(t *tally.Totals) {
	moved := func(d tally.Direction) Moved { return Moved{t.Size(d).Total().Int64(), t.Requests(d).Sum.Int64()} }
	durations := func(h *tally.Histogram) Durations { return Durations{h.Count(), h.Sum(), h.Bounds(), h.Counts()} }
	s.Transmit, s.Receive = moved(tally.Transmit), moved(tally.Receive)
	s.Registered, s.Deregistered = t.Registered().Sum.Int64(), t.Deregistered().Sum.Int64()
	s.Transfers, s.Posts = durations(t.Duration()), durations(t.PostDuration())
	for kind := ringbuf.TypeErrNotPosted; kind <= ringbuf.TypeErrNoTelemetry; kind++ {
		if n := t.Errors(kind).Sum.Int64(); n > 0 {
			s.Errors[status(kind)] = n
		}
	}
	s.Dropped = t.Dropped().Sum.Int64()
}

func status(kind ringbuf.Type) string { return strings.TrimPrefix(kind.String(), "agent_err_") }

// adviseStore gives advice about a readable store.
func (r *Report) adviseStore() {
	if r.alive == procs.No {
		switch {
		case r.idle < 0:
			r.advice("The process has exited, and it last updated the store before this machine was started. A Collector doesn't count this store, " +
				"unless its storage shows that it counted earlier values. The file can be removed.")
		case r.idle >= engine.DefaultStaleAfter:
			r.advice("The process has exited, and it last updated the store %s ago. A Collector that finds such a store after stale_after (%s by default) "+
				"doesn't count it, unless its storage shows that it counted earlier values.", units.Age(r.idle), units.Age(engine.DefaultStaleAfter))
		default:
			r.advice("The process has exited. A Collector counts its values once, and keeps them if the file is removed while it runs; without storage, until it restarts. " +
				"If the file is removed while no Collector runs, values that weren't stored before are missing from the agent's totals.")
		}
		r.advice("If the process is still running, it couldn't lock its store: check the agent's log, and restart the agent.")
	}
}

func (r *Report) storeText(line liner, now time.Time) {
	s := r.Store
	line("Layout", "%s, a store of NIXL's prometheus_mp exporter", s.Layout)
	line("Agent", "%s", s.Agent)
	line("Process", "%d (in its own PID namespace), instance %d, on host %s", s.PID, s.Instance, s.Host)
	if s.LocalRank != "" {
		line("Local rank", "%s", s.LocalRank)
	}
	line("Started", "%s, %s ago", s.Start.Format(time.DateTime), units.Age(now.Sub(s.Start)))
	line("State", "%s", map[procs.Alive]string{
		procs.Yes:     "running: a process holds the lock on the store",
		procs.No:      "exited: no process holds the lock on the store",
		procs.Unknown: "unknown: the file system doesn't tell who holds the lock on the store",
	}[r.alive])
	line("Transmitted", "%s", s.Transmit)
	line("Received", "%s", s.Receive)
	line("Memory", "%s registered, %s deregistered", units.Memory(s.Registered), units.Memory(s.Deregistered))
	line("Transfers", "%s", &s.Transfers)
	line("Posts", "%s", &s.Posts)
	line("Errors", "%s", s.errorText())
	line("Dropped", "%s events", units.Count(uint64(s.Dropped)))
}

// errorText lists the errors by status, in the order of NIXL's statuses.
func (s *Store) errorText() string {
	var list []string
	for kind := ringbuf.TypeErrNotPosted; kind <= ringbuf.TypeErrNoTelemetry; kind++ {
		if n := s.Errors[status(kind)]; n > 0 {
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
	last := -1
	for i, n := range d.Counts {
		if n > 0 {
			last = i
		}
	}
	switch bound := func(i int) string { return units.Bare(units.Duration(d.Bounds[i])) }; {
	case last < 0:
		return text
	case last < len(d.Bounds):
		return text + ", at most " + bound(last)
	default:
		return text + ", the longest over " + bound(last-1)
	}
}
