// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// state is what discovery knows about a path; see the package's documentation.
type state uint8

const (
	absent state = iota
	open
	refused
	ignored
	alias
)

// record is what is known about one path.
type record struct {
	drain.Agent
	state state
	known bool            // the owner has an agent of this path
	ring  *ringbuf.Reader // the newest ring that the owner has; nil if none
	info  ringbuf.FileInfo
	walk  uint64 // the last walk that came across the path

	// While the path is refused:
	since time.Time
	tried time.Time
	wait  time.Duration // from tried until the next try

	rejected time.Duration // the wait after the owner rejected the ring last

	cause string // reported last; "" if nothing was since the path had its ring, or no file

	pace

	// left is the file as it was when the kernel last said that no other process
	// has it open: an agent that started later has changed the file since.
	left ringbuf.FileInfo
}

// tracker opens rings at known paths and keeps track of these. Its goroutine is
// the only one that uses it, apart from State.
type tracker struct {
	cfg     *Config
	send    func(drain.Message)
	notices *notice.Reporter
	source  drain.Source // that the owner answers to

	records   map[string]*record        // by path
	soon      map[string]*record        // those to look at before the next walk
	soonest   time.Time                 // when the first of them is due; zero if there is none
	restarted map[ringbuf.FileID]string // paths of rings whose agents restarted, to find out who has them mapped
	checked   time.Time                 // when that was last found out
	checking  sync.WaitGroup            // until it is
	stopped   bool                      // nothing is opened any more

	mu      sync.Mutex // guards what follows; held for moments only
	missing error
	rings   int // that are open
	refused map[string]Refusal
}

func newTracker(cfg *Config, send func(drain.Message), notices *notice.Reporter, source drain.Source) tracker {
	return tracker{
		cfg: cfg, send: send, notices: notices, source: source,
		records: make(map[string]*record), soon: make(map[string]*record),
		restarted: make(map[ringbuf.FileID]string), refused: make(map[string]Refusal),
	}
}

// State is what a source has found, for telemetry and for health checks.
type State struct {
	Missing error              // why the source finds nothing; nil if it does
	Open    int                // rings
	Refused map[string]Refusal // rings that can't be opened, by path

	Directories int // that [Places] watches
}

// Refusal is why a ring can't be opened.
type Refusal struct {
	Reason string // one of few words, for a metric
	Err    error
}

// State returns the state of the tracker. It is safe for concurrent use and
// never blocks.
func (t *tracker) State() State {
	t.mu.Lock()
	defer t.mu.Unlock()
	return State{Missing: t.missing, Open: t.rings, Refused: maps.Clone(t.refused)}
}

// record returns the record of a name, which may be new.
func (t *tracker) record(name string) *record {
	path := strings.TrimSuffix(t.cfg.Dir, "/") + "/" + name
	r := t.records[path]
	if r == nil {
		r = &record{Agent: drain.Agent{ID: path, Name: name, Dir: t.cfg.Dir, Path: path}}
		t.records[path] = r
	}
	return r
}

// enter changes the state of a path. The owner of an open ring is informed if its
// file is gone.
func (t *tracker) enter(r *record, s state) {
	switch {
	case r.state == s:
		return
	case r.ring != nil && r.state == open:
		t.send(drain.Removed{ID: r.ID})
	}
	if s != refused {
		t.setRefusal(r.Path, nil)
	}
	if s == open || s == absent {
		r.cause = ""
	}
	r.state, r.since, r.wait = s, t.cfg.Now(), 0
}

func (t *tracker) setRefusal(path string, refusal *Refusal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if refusal == nil {
		delete(t.refused, path)
	} else {
		t.refused[path] = *refusal
	}
}

// opened counts a ring that the owner has been sent. It comes after the message,
// so that whoever sees the count finds the ring in the next collection.
func (t *tracker) opened() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rings++
}

// attach notes that a ring was opened.
func (t *tracker) attach(r *record, ring *ringbuf.Reader) {
	r.ring = nil // the ring that it may have had is the old one now, which isn't found again
	t.enter(r, open)
	r.ring = ring
}
