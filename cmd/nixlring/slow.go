// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/top"
	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/live"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// slowFlags is the command line of nixlring slow.
type slowFlags struct {
	slowConditions
	watchFlags
	duration time.Duration
	count    uint64
	quiet    bool
	output   *output
}

func newSlow(w world) *cobra.Command {
	var f slowFlags
	cmd := &cobra.Command{
		Use:   "slow [DIR]",
		Short: "Print slow transfers as they occur",
		Long: fmt.Sprintf(`Slow prints a line for each slow transfer of all agents until interrupted. From
rings, it first prints those that are already in them.

`+sourceHelp+`

A transfer is slow if it meets any of these conditions:

  --slow-transfer   it took longer than this
  --min-throughput  it had a lower throughput, and at least 1 MiB

An agent writes four events per transfer. If one of them is missing, the transfer
isn't printed. Slow polls rings twice per run interval, and misses events that a
consumer takes and the agent overwrites in between. A full ring without a consumer
stops changing.

The columns are the time, the direction, the size, the transfer time, the post
time, the throughput, the condition, and the agent. Only layout v1 has timestamps;
for other layouts, TIME is when the events were read. JSON has one object per
line.

The receiver can log slow transfers by the same conditions; see its setting logs.

`, "slow") + exitCodes,
		Example: `  nixlring slow
  nixlring slow /run/nixl --slow-transfer 50ms
  nixlring slow --slow-transfer 0 --min-throughput 1e9 --include 'decode-*' --output json`,
		Args:              usage(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeDirs,
		RunE:              watching(&f, w),
	}
	f.register(cmd)
	return cmd
}

func (f *slowFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	f.slowConditions.register(cmd, "print")
	flags.Uint64VarP(&f.count, "count", "c", 0, "stop after `NUMBER` slow transfers; 0 for no limit")
	flags.DurationVarP(&f.duration, "duration", "d", 0, "how long to observe; 0 for no limit")
	f.watchFlags.register(cmd, "observe")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print slow transfers only")
	f.output = addOutput(cmd, "text", "json")
}

// complete sets the values that come from the command line or the environment, and rejects
// invalid flags.
func (f *slowFlags) complete(cmd *cobra.Command, w world, args []string) error {
	if err := f.watchFlags.complete(cmd, w, args); err != nil {
		return err
	}
	if err := f.slowConditions.check(); err != nil {
		return err
	}
	switch {
	case f.slowTransfer == 0 && f.minThroughput == 0:
		return usagef("no condition for slow transfers; set --slow-transfer or --min-throughput")
	case f.duration < 0:
		return usagef("--duration %v: must be 0 or more", f.duration)
	}
	return nil
}

// closeTimeout limits the time that closing the rings waits for file systems.
const closeTimeout = 5 * time.Second

func (f *slowFlags) run(ctx context.Context, w world) (err error) {
	if f.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.duration)
		defer cancel()
	}
	say := notes(w, f.quiet)
	if err := f.checkDir(); err != nil {
		return err
	}
	rings := f.rings(w)
	cfg := rings.Observe()
	cfg.Report = func(n notice.Notice) { sayWarning(say, n) }
	cfg.Tally = tally.Config{
		Duration:   tally.HistogramConfig{Bounds: top.Bounds()},
		Size:       tally.HistogramConfig{Kind: tally.NoHistogram},
		Throughput: tally.HistogramConfig{Kind: tally.NoHistogram},
	}
	h, err := engine.New(cfg)
	if err != nil {
		return usageError{err}
	}
	found := newSlowQueue()
	slow := f.conditions()
	h.Watch(&engine.Watch{
		Transfer: func(a *engine.Agent, t *tally.Transfer) {
			if slow.Check(t) {
				agent, one := live.Identify(a), live.NewTransfer(t, w.now())
				found.put(newSlowTransfer(a.Path, top.NameOf(&agent), &one))
			}
		},
	})
	if err := h.Start(nil); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		err = errors.Join(err, h.Stop(ctx))
	}()
	return f.print(ctx, w, say, h, found)
}

// retireEvery is the time between two checks for exited agents.
const retireEvery = 10 * time.Second

// print prints slow transfers until ctx is done, or until f.count were printed.
func (f *slowFlags) print(ctx context.Context, w world, say io.Writer, h *engine.Engine, found *slowQueue) error {
	out := slowWriter{out: w.out, format: f.output.value, most: f.count}
	if err := out.head(); err != nil {
		return err
	}
	retire := time.NewTicker(retireEvery)
	defer retire.Stop()
	for !out.enough() {
		select {
		case <-found.arrived:
			if err := out.write(found.take()); err != nil {
				return err
			}
			continue
		case <-retire.C:
			if c, err := h.Collect(ctx, false); err == nil { // errors are also reported as notices
				h.Delivered(c)
			}
			continue
		case <-ctx.Done():
		}
		break
	}
	last, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	c, err := h.Collect(last, true) // reads the remaining events
	if err != nil {
		return err
	}
	if err := out.write(found.take()); err != nil {
		return err
	}
	var all uint64
	for _, s := range c.Snapshots {
		all += s.Totals.Requests(tally.Transmit).Events + s.Totals.Requests(tally.Receive).Events
	}
	if found.dropped > 0 {
		fmt.Fprintf(w.err, "Not printed because the output was too slow: %s\n", plural(found.dropped, "slow transfer", "slow transfers"))
	}
	out.summarize(say, all, len(c.Snapshots))
	return nil
}

// slowQueue passes slow transfers to the output. Adding to it never blocks.
type slowQueue struct {
	arrived chan struct{} // with a buffer of one

	mu      sync.Mutex
	list    []slowTransfer
	dropped int
}

// maxSlowQueue bounds the memory if the output blocks.
const maxSlowQueue = 1 << 16

func newSlowQueue() *slowQueue { return &slowQueue{arrived: make(chan struct{}, 1)} }

func (q *slowQueue) put(t slowTransfer) {
	q.mu.Lock()
	if len(q.list) < maxSlowQueue {
		q.list = append(q.list, t)
	} else {
		q.dropped++
	}
	q.mu.Unlock()
	select {
	case q.arrived <- struct{}{}:
	default:
	}
}

func (q *slowQueue) take() []slowTransfer {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.list
	q.list = nil
	return list
}
