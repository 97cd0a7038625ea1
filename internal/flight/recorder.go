// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/recording"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Recorder keeps the newest events of all agents, and writes recordings. The functions of its
// [Recorder.Handler] and [Recorder.Watch] are for the goroutine that drains the rings.
type Recorder struct {
	cfg       Config
	directory directory
	start     time.Time

	mu     sync.Mutex // guards the fields below
	memory memory
	last   int64               // time of the last entry
	busy   bool                // a recording is due or is being written
	newest time.Time           // when the cause of the newest recording occurred
	causes map[group]time.Time // likewise, by group, within the interval

	due    chan recording.Cause // with a buffer of one
	ending chan struct{}
	done   chan struct{}
}

// New returns a recorder that writes recordings once it is started.
func New(cfg Config) *Recorder {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Recorder{
		cfg: cfg, start: cfg.Now(), directory: directory{path: cfg.Directory, limit: cfg.Bytes},
		memory: newMemory(cfg.Limits), causes: make(map[group]time.Time),
		due: make(chan recording.Cause, 1), ending: make(chan struct{}), done: make(chan struct{}),
	}
}

// Handler returns the functions that receive what is read from rings.
func (r *Recorder) Handler() engine.Handler {
	return engine.Handler{
		Opened: r.opened,
		Events: r.events,
		Missed: func(a engine.Agent, err error) { r.state(&a, missed, err.Error()) },
		Full: func(a engine.Agent) {
			r.state(&a, full, "")
			r.cause(&a, recording.FullRing, func() string { return recording.WhyFull })
		},
		Closed: func(a engine.Agent, err error) { r.state(&a, closed, err.Error()) },
	}
}

// Watch returns a watch whose slow transfers and errors cause recordings.
func (r *Recorder) Watch(slow tally.Slow, errors bool) *engine.Watch {
	w := &engine.Watch{Slow: slow, Transfer: func(a engine.Agent, t tally.Transfer) {
		r.cause(&a, recording.SlowTransfer, func() string { return sentence(&t) })
	}}
	if errors {
		w.Error = func(a engine.Agent, e tally.Error) {
			kind := semconv.ErrorOther
			if e.Type.IsError() {
				kind = tally.ErrorName(e.Type)
			}
			if kind != diagnose.Canceled { // by the application
				r.cause(&a, recording.Failure, func() string { return kind })
			}
		}
	}
	return w
}

func sentence(t *tally.Transfer) string {
	verb := "transmitting"
	if t.Direction == tally.Receive {
		verb = "receiving"
	}
	took := time.Duration(min(t.Duration, math.MaxInt64/1000)) * time.Microsecond
	return fmt.Sprintf("%s %s took %v", verb, units.Bytes(t.Bytes), took)
}

// now returns the time of an entry, in microseconds since the epoch. It never decreases.
func (r *Recorder) now() int64 {
	r.last = max(r.last, r.start.UnixMicro()+r.cfg.Now().Sub(r.start).Microseconds())
	return r.last
}

func (r *Recorder) opened(a engine.Agent, l ringbuf.Layout, capacity int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, one := r.now(), r.memory.of(&a)
	if c := r.memory.chunk(one, at, maxHead+1+binary.MaxVarintLen64); c != nil {
		c.addOpened(at, l, capacity)
	}
	one.Agent, one.layout, one.capacity, one.open = a, l, capacity, true
}

func (r *Recorder) state(a *engine.Agent, kind byte, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, one := r.now(), r.memory.of(a)
	if c := r.memory.chunk(one, at, maxHead+binary.MaxVarintLen64+maxWhy); c != nil {
		c.addState(at, kind, why)
	}
	one.open = one.open && kind != closed
}

func (r *Recorder) events(a engine.Agent, b ringbuf.Batch) {
	r.mu.Lock()
	defer r.mu.Unlock() // also if the memory of the batch faults
	at, one := r.now(), r.memory.of(&a)
	for next := 0; next < b.Len(); {
		c := r.memory.chunk(one, at, maxHead+maxEvent)
		if c == nil {
			return
		}
		next = c.addEvents(at, b, next)
	}
	r.memory.sweep(at)
}

// cause makes a recording due, unless there was one a short time ago.
func (r *Recorder) cause(a *engine.Agent, kind recording.CauseKind, why func() string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy {
		return
	}
	now := r.cfg.Now()
	if !r.newest.IsZero() && now.Sub(r.newest) < min(between, r.cfg.Interval) {
		return
	}
	g := groupOf(a)
	if last, ok := r.causes[g]; ok && now.Sub(last) < r.cfg.Interval {
		return
	}
	for other, last := range r.causes {
		if now.Sub(last) >= r.cfg.Interval {
			delete(r.causes, other)
		}
	}
	r.busy, r.newest, r.causes[g] = true, now, now
	r.due <- recording.Cause{Kind: kind, Agent: a.Name, Path: a.Path, Time: now, Why: why()}
}

// Start starts writing recordings. It reports a directory that can't be used.
func (r *Recorder) Start() {
	if err := r.directory.prepare(); err != nil {
		r.failed(recording.Cause{}, err)
	}
	go r.run()
}

// Stop writes a recording that is due, and ends the goroutine. It doesn't wait past ctx. It must
// be called after [Recorder.Start].
func (r *Recorder) Stop(ctx context.Context) error {
	close(r.ending)
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("write a recording to %s: %w", r.cfg.Directory, ctx.Err())
	}
}

func (r *Recorder) run() {
	defer close(r.done)
	for {
		select {
		case c := <-r.due:
			r.wait()
			r.record(c)
		case <-r.ending:
			select {
			case c := <-r.due:
				r.record(c)
			default:
			}
			return
		}
	}
}

// wait waits for the events after a cause.
func (r *Recorder) wait() {
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.ending:
	}
}

// record writes a recording.
func (r *Recorder) record(c recording.Cause) {
	r.mu.Lock()
	all := r.memory.take(r.now())
	r.mu.Unlock()
	path, err := r.write(&c, all)
	r.mu.Lock()
	r.memory.release(all)
	r.busy = false
	r.mu.Unlock()
	if err != nil {
		r.failed(c, err)
		return
	}
	r.cfg.Report(notice.Notice{
		Kind: notice.RecordingWritten, Level: slog.LevelInfo, Path: path,
		Text: fmt.Sprintf("recording written, because of %s of agent %q: %s; nixlring why explains it", c.Kind, c.Agent, c.Why),
	})
	r.wrote(c.Kind, nil)
}

func (r *Recorder) failed(c recording.Cause, err error) {
	r.cfg.Report(notice.Notice{
		Kind: notice.RecordingFailed, Level: slog.LevelError, Path: r.cfg.Directory, Err: err,
		Text: "recordings of problems can't be written; check the directory, its file system and the limit on its size",
	})
	r.wrote(c.Kind, err)
}

func (r *Recorder) wrote(kind recording.CauseKind, err error) {
	if r.cfg.Wrote != nil {
		r.cfg.Wrote(kind, err)
	}
}
