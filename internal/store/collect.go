// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"log/slog"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/notice"
)

// saveTimeout is how long a collection waits for the storage extension.
const saveTimeout = 5 * time.Second

// Collection is the totals of the agents of a directory at one time.
type Collection struct {
	from      *Directory
	number    uint64
	read      chan struct{} // closed when snapshots is there
	stored    chan bool     // has room for one answer
	snapshots []drain.Snapshot
}

// Collect begins a collection: it reads all stores, and with walk looks for new
// ones before. It returns nil if an earlier one hangs, or after Stop.
func (d *Directory) Collect(walk bool) *Collection {
	c := &Collection{from: d, read: make(chan struct{}), stored: make(chan bool, 1)}
	if d.late.Load() || !d.worker.Ask(func() { d.collect(c, walk) }) {
		return nil
	}
	return c
}

// collect carries out a collection.
func (d *Directory) collect(c *Collection, walk bool) {
	if walk {
		d.tick()
	}
	d.collections++
	c.number = d.collections
	now := d.cfg.Now()
	for _, a := range d.agents {
		d.poll(a, true)
		if a.loading || a.up() == drain.UpUnknown && d.silent(a, now) {
			continue
		}
		c.snapshots = append(c.snapshots, d.snapshot(a))
		a.shown = shown{collection: c.number, changed: a.changed}
	}
	d.late.Store(false)
	close(c.read)
	answer := c.stored // not c, which a save that hangs would keep
	d.save(func(stored bool) { answer <- stored })
}

// Wait returns the totals, once they are stored if there is a saver. It waits for
// a file system or a storage extension that hangs for moments only: it returns
// nothing then, or totals that aren't stored.
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
		c.from.late.Store(true)
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
	return c.snapshots
}

// Delivered says that a collection has arrived. An agent that has exited is
// reported until its last values have.
func (c *Collection) Delivered() {
	if c == nil {
		return
	}
	d := c.from
	d.worker.Ask(func() {
		for _, a := range d.agents {
			if a.shown.collection == c.number {
				a.delivered = a.shown.changed
			}
		}
	})
}
