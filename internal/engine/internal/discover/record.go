// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// state is the state of a path; see the package documentation.
type state uint8

const (
	absent state = iota
	open
	refused
	ignored
	alias
)

// record describes one path.
type record struct {
	drain.Agent
	state state
	known bool            // the owner has an agent for this path
	ring  *ringbuf.Reader // the newest ring that the owner has; nil if none
	info  files.Info
	walk  uint64 // the last walk that reached the path

	// While the path is refused:
	since time.Time
	tried time.Time
	wait  time.Duration // from tried until the next try

	limited     bool          // the limit on rings was the reason
	refusedWait time.Duration // after the owner last refused the ring

	cause string // reported last; reset when the path gets a ring or loses its file

	sought  time.Time // a search for the agent's process must have begun after this
	seeking bool      // there was no such search yet

	// exitInfo describes the file when a probe last found that no other process has
	// it open. An agent that starts later changes the file.
	exitInfo files.Info
}

// tracker opens rings and keeps the record of each path. Only the directory's
// goroutine may use it, except for State.
type tracker struct {
	cfg     Config
	send    func(drain.Message)
	notices *notice.Reporter
	source  drain.Source // the owner returns rings to it

	records map[string]*record // by path
	seeking bool               // the process of an agent is sought
	retryAt time.Time          // when the first refused path is tried again
	stopped bool               // nothing is opened from now on
	ctx     context.Context    // ends with the directory's goroutine

	onDisk bool // it was reported that rings are on a disk

	crowded   int       // rings that were refused because of the limit since crowdedAt
	crowdedAt time.Time // when the owner was last informed about such rings

	mu      sync.Mutex // guards the fields below; never held during a call that may block
	missing error
	rings   int // open rings
	refused map[string]Refusal
}

func newTracker(cfg Config, send func(drain.Message), notices *notice.Reporter, source drain.Source) tracker {
	return tracker{
		cfg: cfg, send: send, notices: notices, source: source, ctx: context.Background(),
		records: make(map[string]*record), refused: make(map[string]Refusal),
	}
}

// State is the state of a source, for telemetry and health checks.
type State struct {
	Missing error              // why the source can't find rings; nil if it can
	Open    int                // open rings
	Refused map[string]Refusal // rings that can't be opened, by path

	Directories int // directories that a [Watcher] watches
}

// Refusal states why a ring can't be opened.
type Refusal struct {
	Reason string // value of the metric attribute reason
	Err    error
}

// State returns the state of the tracker. It is safe for concurrent use and
// never blocks.
func (t *tracker) State() State {
	t.mu.Lock()
	defer t.mu.Unlock()
	return State{Missing: t.missing, Open: t.rings, Refused: maps.Clone(t.refused)}
}

// path returns the path of a name.
func (t *tracker) path(name string) string { return strings.TrimSuffix(t.cfg.Dir, "/") + "/" + name }

// record returns the record of a name. It creates the record if necessary, but returns nil
// if the holder has no budget for it.
func (t *tracker) record(name string) *record {
	path := t.path(name)
	r := t.records[path]
	if r == nil {
		if t.cfg.Rings.use(t.cfg.Holder, someFiles, 1) != nil {
			return nil
		}
		r = &record{Agent: drain.Agent{
			ID: path, Name: name, Dir: t.cfg.Dir, Path: path, Holder: t.cfg.Holder,
		}}
		t.records[path] = r
	}
	return r
}

// report reports a notice about the directory or one of its files.
func (t *tracker) report(n notice.Notice) {
	n.Pod, n.Container = t.cfg.Holder.Pod, t.cfg.Holder.Container
	t.notices.Report(n)
}

// setState changes the state of a path. If the path loses the file of its open ring,
// the owner is informed.
func (t *tracker) setState(r *record, s state) {
	switch {
	case r.state == s:
		return
	case r.ring != nil && r.state == open:
		t.send(drain.Removed{ID: r.ID})
	}
	if s != refused {
		t.setRefusal(r.Path, nil)
		r.limited = false
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

// opened counts an open ring. It must be called after the ring was sent to the owner,
// so that the next collection includes every ring in the count.
func (t *tracker) opened() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rings++
}
