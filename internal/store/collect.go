// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"log/slog"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// saveTimeout is the maximum time that a collection waits for the storage extension.
const saveTimeout = 5 * time.Second

// Collection is the totals of the agents of a directory at one time.
type Collection struct {
	from    *Directory
	number  uint64
	read    chan struct{} // closed when buffers is set
	stored  chan bool     // buffered; receives whether the save succeeded
	buffers *buffers      // nil after Release
}

// buffers hold the snapshots of a collection. Reusing them avoids most of the cost of a
// snapshot, which is allocating it.
type buffers struct {
	snapshots []drain.Snapshot
	processes []drain.Process // of all snapshots
	totals    []*tally.Totals // of all snapshots and processes
	used      int             // number of totals in use
}

// totalsOf converts values to totals.
func (b *buffers) totalsOf(shape *tally.Shape, v, before *tally.Values) *tally.Totals {
	if b.used == len(b.totals) {
		b.totals = append(b.totals, nil)
	}
	t := shape.Import(v, before, b.totals[b.used])
	b.totals[b.used] = t
	b.used++
	return t
}

// reset empties the buffers, and keeps the memory that was in use.
func (b *buffers) reset() {
	clear(b.totals[b.used:])
	b.snapshots, b.processes, b.totals, b.used = b.snapshots[:0], b.processes[:0], b.totals[:b.used], 0
}

// Collect starts to read all stores. With walk, it searches for new stores first. It
// returns nil if an earlier collection hangs, or after Stop.
func (d *Directory) Collect(walk bool) *Collection {
	c := &Collection{from: d, read: make(chan struct{}), stored: make(chan bool, 1)}
	if d.overdue.Load() || !d.worker.Submit(func() { d.collect(c, walk) }) {
		return nil
	}
	return c
}

// collect carries out a collection. It relies on [Directory.refresh] to notice exits.
func (d *Directory) collect(c *Collection, walk bool) {
	if walk {
		d.refresh()
	}
	d.collections++
	c.number = d.collections
	b := d.spare.Swap(nil)
	if b == nil {
		b = &buffers{}
	}
	now := d.cfg.Now()
	for _, a := range d.order {
		d.readAll(a, now)
		if a.loading || a.up() == drain.UpUnknown && d.isInactive(a, now) {
			continue
		}
		b.snapshots = append(b.snapshots, d.snapshot(a, b))
		a.collected = collected{collection: c.number, changed: a.changed}
	}
	d.overdue.Store(false)
	c.buffers = b
	close(c.read)
	result := c.stored // don't capture c, because a save that hangs would keep it in memory
	d.save(func(stored bool) { result <- stored })
}

// Wait waits until the stores are read and the checkpoints are stored, and returns the
// totals. If reading takes longer than ReadTimeout, it returns nil. If storing takes
// longer than 5 seconds, it returns the totals and reports that they aren't stored. If
// ctx has a deadline, both times are shorter.
func (c *Collection) Wait(ctx context.Context) []drain.Snapshot {
	if c == nil {
		return nil
	}
	reading, saving := c.from.cfg.ReadTimeout, saveTimeout
	if end, ok := ctx.Deadline(); ok {
		left := time.Until(end)
		reading, saving = min(reading, left/4), min(saving, left*9/10)
	}
	timer := time.NewTimer(reading)
	defer timer.Stop()
	select {
	case <-c.read:
	case <-timer.C:
		c.from.overdue.Store(true)
		return nil
	}
	timer.Reset(saving)
	stored := false
	select {
	case stored = <-c.stored:
	case <-timer.C:
	}
	if !stored {
		c.from.notices.Report(notice.Notice{
			Kind: notice.ExportUnsaved, Level: slog.LevelWarn,
			Text: "totals were exported before their checkpoint was stored; a crash right now may count events twice; check the storage extension",
		})
	}
	return c.buffers.snapshots
}

// Release lets a later collection reuse the memory of the snapshots. The caller must not
// use them afterwards. Without Release, the snapshots never change.
func (c *Collection) Release() {
	if c == nil {
		return
	}
	select {
	case <-c.read:
	default:
		return // still reading
	}
	if b := c.buffers; b != nil {
		c.buffers = nil
		b.reset()
		c.from.spare.Store(b)
	}
}

// Delivered records that a collection was exported. An exited agent is reported until
// its last values have been delivered.
func (c *Collection) Delivered() {
	if c == nil {
		return
	}
	d := c.from
	d.worker.Submit(func() {
		for _, a := range d.agents {
			if a.collected.collection == c.number {
				a.delivered = a.collected.changed
			}
		}
	})
}
