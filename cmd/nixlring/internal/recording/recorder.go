// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/follow"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// RecorderConfig configures a [Recorder].
type RecorderConfig struct {
	Dir       string
	Recursive bool
	Out       io.Writer
	Now       func() time.Time // time.Now if nil
}

// Stats counts what was recorded so far.
type Stats struct {
	Rings  int
	Opened uint64 // how often rings were opened, including restarts of agents
	Events uint64
	Missed uint64 // how often events may have been missed
	Bytes  int64  // size of the file
}

// Recorder observes the rings of a directory and records their events. It never changes a
// ring, so it can run beside a consumer.
type Recorder struct {
	cfg   RecorderConfig
	dir   *follow.Dir
	out   *Writer
	ids   map[*follow.Ring]int
	now   time.Time // of the current poll
	stats Stats
	err   error // the first error of writing
}

// NewRecorder starts a recording.
func NewRecorder(cfg RecorderConfig) (*Recorder, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	out, err := NewWriter(cfg.Out, cfg.Now(), cfg.Dir)
	if err != nil {
		return nil, err
	}
	r := &Recorder{cfg: cfg, out: out, ids: make(map[*follow.Ring]int)}
	r.dir = follow.NewDir(follow.DirConfig{Path: cfg.Dir, Recursive: cfg.Recursive, Handler: r, Now: cfg.Now})
	return r, nil
}

// Poll records the events since the last poll. It returns errors of reading the directory
// and of writing.
func (r *Recorder) Poll() error {
	r.now = r.cfg.Now()
	err := r.dir.Poll()
	return errors.Join(err, r.note(r.out.Tick(r.now)))
}

// Run polls at an interval until ctx is done. It returns an error if the directory can't be
// read or the file can't be written.
func (r *Recorder) Run(ctx context.Context, interval time.Duration) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := r.Poll(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Stats returns the counts so far.
func (r *Recorder) Stats() Stats {
	s := r.stats
	s.Bytes = r.out.Bytes()
	return s
}

// Close polls once more and ends the recording.
func (r *Recorder) Close() error {
	// If the first poll finds that an agent has restarted, the second one opens its ring
	// again.
	return errors.Join(r.Poll(), r.Poll(), r.dir.Close(), r.out.Close(r.cfg.Now()))
}

// note stores the first error of writing.
func (r *Recorder) note(err error) error {
	if r.err == nil {
		r.err = err
	}
	return r.err
}

// Opened implements [follow.Handler].
func (r *Recorder) Opened(ring *follow.Ring) {
	id, known := r.ids[ring]
	if !known {
		id = len(r.ids)
		r.ids[ring] = id
		r.stats.Rings++
	}
	r.stats.Opened++
	_ = r.note(r.out.Open(r.now, id, ring.Name(), ring.Layout(), ring.Capacity()))
}

// Events implements [follow.Handler].
func (r *Recorder) Events(ring *follow.Ring, b ringbuf.Batch) {
	r.stats.Events += uint64(b.Len())
	_ = r.note(r.out.Events(r.now, r.ids[ring], b))
}

// Missed implements [follow.Handler].
func (r *Recorder) Missed(ring *follow.Ring, err error) {
	r.stats.Missed++
	_ = r.note(r.out.Missed(r.now, r.ids[ring], err.Error()))
}

// Ended implements [follow.Handler].
func (r *Recorder) Ended(ring *follow.Ring, err error) {
	_ = r.note(r.out.Ended(r.now, r.ids[ring], err.Error()))
}
