// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/top"
	"github.com/nixl-otel/nixl-otel/internal/live"
)

const (
	// slowInterval is the time between two requests.
	slowInterval = 250 * time.Millisecond
	// slowMost is the maximum number of transfers of an agent per request.
	slowMost = 1000
)

// follow prints slow transfers that a Collector counts, until ctx is done, or until f.count
// were printed.
func (f *slowFlags) follow(ctx context.Context, w world, say io.Writer) (err error) {
	source := top.NewLive(top.LiveConfig{Socket: f.socket, Include: f.include, Recursive: f.recursive})
	defer func() { err = errors.Join(err, source.Close()) }()
	slow := f.conditions()
	conditions := &live.Conditions{
		SlowTransfer: uint64(slow.Duration.Microseconds()), MinThroughput: slow.MinThroughput,
		Most: slowMost,
	}
	before, err := source.Frame(live.Request{Transfers: conditions})
	if err != nil {
		return err
	}
	out := slowWriter{out: w.out, format: f.output.value, most: f.count}
	if err := out.head(); err != nil {
		return err
	}
	ticker := time.NewTicker(slowInterval)
	defer ticker.Stop()
	for ended := false; !ended && !out.enough(); {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			ended = true
		}
		frame, err := source.Frame(live.Request{Transfers: conditions, NoTotals: !ended})
		if err != nil {
			return err
		}
		list, omitted := slowOf(frame)
		if err := out.write(list); err != nil {
			return err
		}
		if omitted > 0 {
			fmt.Fprintf(w.err, "Not printed, because there were more than %d of an agent: %s\n", slowMost, plural(int(omitted), "slow transfer", "slow transfers"))
		}
	}
	after, err := source.Frame(live.Request{})
	if err != nil {
		return err
	}
	out.summarize(say, observed(before, after), len(after.Agents))
	return nil
}

// observed returns the number of transfers between two frames.
func observed(before, after *live.Frame) (n uint64) {
	type stream struct {
		id    string
		start int64
	}
	old := make(map[stream]uint64)
	each := func(f *live.Frame, do func(s stream, transfers uint64)) {
		for i := range f.Agents {
			if a := &f.Agents[i]; a.Totals != nil {
				do(stream{a.ID, a.Start.UnixNano()}, a.Totals.Transfers)
			}
		}
	}
	each(before, func(s stream, transfers uint64) { old[s] = transfers })
	each(after, func(s stream, transfers uint64) { n += transfers - old[s] })
	return n
}

// slowOf returns the transfers of a frame in order, and how many are missing.
func slowOf(f *live.Frame) (list []slowTransfer, omitted uint64) {
	for i := range f.Agents {
		a := &f.Agents[i]
		for n := range a.Transfers {
			list = append(list, newSlowTransfer(a.Path, top.NameOf(a), &a.Transfers[n]))
		}
		omitted += a.Omitted
	}
	slices.SortStableFunc(list, func(a, b slowTransfer) int { return cmp.Compare(a.Micros, b.Micros) })
	return list, omitted
}
