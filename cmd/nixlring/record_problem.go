// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/patherr"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recorder"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/render"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/top"
	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/flight"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/recording"
	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// watch observes the rings of a directory, and writes recordings of problems, until ctx is done.
func (f *recordFlags) watch(ctx context.Context, w world, to, dir string) (err error) {
	if err := patherr.Directory(patherr.Rings, dir); err != nil {
		return err
	}
	if to, err = filepath.Abs(to); err != nil {
		return err
	}
	if err := flight.Prepare(to); err != nil {
		return err
	}
	say := notes(w, f.quiet)
	var written atomic.Int64
	report := func(n notice.Notice) {
		if n.Kind == notice.RecordingWritten {
			fmt.Fprintln(say, n.String())
		} else {
			sayWarning(say, n)
		}
	}
	host, _ := os.Hostname() // empty if unknown
	limits := flight.Defaults
	limits.Bytes = f.maxBytes
	box := flight.New(flight.Config{
		Limits: limits, Directory: to, Tool: "nixlring " + programVersion(), Host: host, Compress: recorder.Compress, Now: w.now, Report: report,
		Wrote: func(_ recording.CauseKind, err error) {
			if err == nil {
				written.Add(1)
			}
		},
	})
	none := tally.HistogramConfig{Kind: tally.NoHistogram}
	rings, err := engine.New(engine.Config{
		Directories: []string{dir}, Include: top.Patterns(nil, f.recursive), Observe: true, Report: report,
		RunInterval: max(2*f.interval, time.Millisecond), // the engine polls at least twice per run interval
		Handler:     box.Handler(),
		Tally:       tally.Config{Duration: tally.HistogramConfig{Bounds: top.Bounds()}, Size: none, Throughput: none},
	})
	if err != nil {
		return err
	}
	rings.Watch(box.Watch(f.conditions(), true))
	if err := rings.Start(nil); err != nil {
		return err
	}
	box.Start()
	fmt.Fprintf(say, "Recording problems of the rings of %s to %s; press Ctrl-C to stop\n", render.Printable(dir), render.Printable(to))
	ctx, cancel := f.limit(ctx)
	defer cancel()
	retire := time.NewTicker(retireEvery)
	defer retire.Stop()
	for ctx.Err() == nil {
		select {
		case <-retire.C:
			if c, err := rings.Collect(ctx, false); err == nil { // errors are also reported as notices
				rings.Delivered(c)
			}
		case <-ctx.Done():
		}
	}
	last, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_, err = rings.Collect(last, true) // reads the remaining events
	err = errors.Join(err, box.Stop(last), rings.Stop(last))
	fmt.Fprintf(say, "Recorded %s\n", plural(int(written.Load()), "problem", "problems"))
	return err
}
