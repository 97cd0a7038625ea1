// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// closeTimeout limits the time that Close waits for file systems.
const closeTimeout = 5 * time.Second

// RecorderConfig configures a [Recorder].
type RecorderConfig struct {
	Dir      string
	Tool     string              // name and version of the program
	Include  []string            // doublestar patterns; all rings in Dir if empty
	Interval time.Duration       // maximum time between two polls of a ring
	Out      io.Writer           // receives the compressed recording
	Now      func() time.Time    // time of the records
	Report   func(notice.Notice) // must not block; may be nil
}

// Stats counts what was recorded so far.
type Stats struct {
	Rings  int
	Opened uint64 // how often rings were opened, including restarts of agents
	Events uint64
	Missed uint64 // how often events may have been missed
	// Omitted is how often rings were opened that aren't recorded, because a recording has at
	// most [MaxAgents] agents.
	Omitted uint64
}

// Recorder observes the rings of a directory and records their events. It never changes a
// ring, so it can run beside a consumer.
type Recorder struct {
	cfg  RecorderConfig
	host *engine.Engine

	mu    sync.Mutex     // guards the fields below; the engine's goroutine writes the events
	out   *Writer        // its errors are those of the next Poll
	ids   map[string]int // numbers of the rings, by path
	stats Stats
}

// NewRecorder starts a recording. The caller must call [Recorder.Close].
func NewRecorder(cfg RecorderConfig) (*Recorder, error) {
	r := &Recorder{cfg: cfg, ids: make(map[string]int)}
	host, _ := os.Hostname() // empty if unknown
	var errOut, errHost error
	r.out, errOut = NewWriter(cfg.Out, Header{Tool: cfg.Tool, Host: host, Directory: cfg.Dir, Start: cfg.Now()})
	none := tally.HistogramConfig{Kind: tally.NoHistogram}
	r.host, errHost = engine.New(engine.Config{
		Directories: []string{cfg.Dir}, Include: cfg.Include, Observe: true, Report: cfg.Report,
		RunInterval: max(2*cfg.Interval, time.Millisecond), // the engine polls at least twice per run interval
		Handler:     engine.Handler{Opened: r.opened, Events: r.events, Missed: r.missed, Full: r.full, Closed: r.closed},
		Tally:       tally.Config{Duration: none, Size: none, Throughput: none},
	})
	if err := errors.Join(errOut, errHost); err != nil {
		return nil, err
	}
	return r, r.host.Start(nil)
}

// Poll records the events that are in the rings now. It returns an error if the file can't be
// written.
func (r *Recorder) Poll(ctx context.Context) error {
	if c, err := r.host.Collect(ctx, false); err == nil { // errors are also reported as notices
		r.host.Delivered(c) // so that the engine forgets agents that exited
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Tick(r.cfg.Now())
}

// Run records until ctx is done. It returns an error if the file can't be written.
func (r *Recorder) Run(ctx context.Context) error {
	for {
		if err := r.Poll(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(flushEvery):
		}
	}
}

// Stats returns the counts so far.
func (r *Recorder) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

// Close records the remaining events and ends the recording.
func (r *Recorder) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_, err := r.host.Collect(ctx, true)
	err = errors.Join(err, r.host.Stop(ctx))
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(err, r.out.Close(r.cfg.Now()))
}

func (r *Recorder) opened(a engine.Agent, l ringbuf.Layout, capacity int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, known := r.ids[a.Path]
	if !known {
		if id = len(r.ids); id == MaxAgents {
			r.stats.Omitted++
			return
		}
		r.ids[a.Path] = id
		r.stats.Rings++
	}
	r.stats.Opened++
	about := About{Name: a.Name, Path: a.Path, Attributes: make(map[string]string)}
	for _, set := range []attribute.Set{a.Process, a.Resource} {
		for it := set.Iter(); it.Next(); {
			kv := it.Attribute()
			about.Attributes[string(kv.Key)] = kv.Value.String()
		}
	}
	_ = r.out.Open(r.cfg.Now(), id, about, l, capacity)
}

func (r *Recorder) events(a engine.Agent, b ringbuf.Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id, ok := r.ids[a.Path]; ok {
		r.stats.Events += uint64(b.Len())
		_ = r.out.Events(r.cfg.Now(), id, b)
	}
}

func (r *Recorder) missed(a engine.Agent, _ error) { r.state(a, Missed) }

func (r *Recorder) full(a engine.Agent) { r.state(a, Full) }

func (r *Recorder) closed(a engine.Agent, _ error) { r.state(a, Closed) }

func (r *Recorder) state(a engine.Agent, s State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s == Missed {
		r.stats.Missed++
	}
	if id, ok := r.ids[a.Path]; ok {
		_ = r.out.State(r.cfg.Now(), id, s)
	}
}
