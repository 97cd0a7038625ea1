// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/notice"
)

// loadTimeout is the maximum time that an agent waits for its checkpoint.
const loadTimeout = 5 * time.Second

// newAgent adds an agent with one process. With a saver, the agent isn't reported until
// its checkpoint is loaded.
func (d *Directory) newAgent(id string, p *process) {
	now := d.cfg.Now()
	a := &agent{
		id: id, name: p.agent, host: p.host, changed: now,
		counted: make(map[string]time.Time),
	}
	d.agents[id] = a
	d.order = append(d.order, a)
	a.loading, a.loadBy, a.processes = true, now.Add(loadTimeout), []*process{p}
	if d.cfg.Saver == nil {
		d.loaded(a, nil, nil)
	} else {
		d.cfg.Saver.Load(checkpoint.Key(id), func(value []byte, err error) {
			d.worker.Submit(func() { d.loaded(a, value, err) })
		})
	}
}

// loaded restores an agent from its checkpoint, and adds the processes that were found
// in the meantime.
func (d *Directory) loaded(a *agent, value []byte, err error) {
	if !a.loading || d.agents[a.id] != a {
		return
	}
	found := a.processes
	a.loading, a.processes = false, nil
	var s stored
	if err == nil && value != nil {
		s, err = decode(value)
	}
	switch {
	case err != nil:
		d.report(found[0].file, warn(notice.CheckpointUnusable, fmt.Sprintf(
			"checkpoint of agent %q can't be used, so its totals include only the existing stores", a.name), err))
	case value != nil:
		a.restore(&s, d.cfg.Now())
	}
	for _, p := range found {
		d.addUnlessStale(a, p)
	}
	d.reconcile(a)
}

// addUnlessStale adds a process to its agent. It closes the store of an unknown process
// that exited long ago.
func (d *Directory) addUnlessStale(a *agent, p *process) {
	_, inBase := a.counted[p.file]
	inCheckpoint := slices.ContainsFunc(a.processes, func(q *process) bool { return q.file == p.file })
	if p.up == drain.UpNo && !inBase && !inCheckpoint && d.isStale(p) {
		d.close(a, p)
		return
	}
	d.addProcess(a, p)
}

// isStale reports whether the last update of a store is older than StaleAfter, or from
// before the machine was started.
func (d *Directory) isStale(p *process) bool {
	uptime, err := d.cfg.Uptime()
	age := uptime - time.Duration(p.updated)
	return err == nil && (age >= d.cfg.StaleAfter || age < -time.Second)
}

// reconcile drops an agent without any store to report. It adds processes to the base
// that only the checkpoint names, if their stores were removed.
func (d *Directory) reconcile(a *agent) {
	if a.newest == nil {
		d.drop(a)
		return
	}
	for i := 0; i < len(a.processes); {
		p := a.processes[i]
		if p.open != nil || !d.absent(p.file) {
			i++
			continue
		}
		d.report(p.file, warn(notice.MPStoreLost, fmt.Sprintf(
			"store of agent %q was removed before its last values were read; events counted after the last checkpoint are missing from the totals", a.name), nil))
		d.fold(a, p)
	}
}

// expireLoads stops waiting for checkpoints that take too long to load.
func (d *Directory) expireLoads() {
	now := d.cfg.Now()
	for _, a := range d.agents {
		if a.loading && !now.Before(a.loadBy) {
			d.loaded(a, nil, fmt.Errorf("not read within %v; check the storage extension", loadTimeout))
		}
	}
}

// save saves the checkpoints of the changed agents, and then calls done. If another save
// is in progress, it waits for that one, unless that one hangs.
func (d *Directory) save(done func(stored bool)) {
	now := d.cfg.Now()
	switch {
	case d.cfg.Saver == nil:
		done(true)
		return
	case d.saving.IsZero():
	case now.Sub(d.saving) < saveTimeout:
		d.waiting = append(d.waiting, done)
		return
	default:
		done(false)
		return
	}
	var ops []checkpoint.Op
	var agents []*agent
	for _, a := range d.agents {
		if !a.loading && a.dirty {
			a.dirty = false
			ops = append(ops, checkpoint.Op{Key: checkpoint.Key(a.id), Value: a.encode(now.Add(-d.cfg.StaleAfter))})
			agents = append(agents, a)
		}
	}
	d.saveSoon = false
	if len(ops) == 0 {
		done(true)
		return
	}
	d.saving = now
	d.cfg.Saver.Save(ops, func(err error) {
		d.worker.Submit(func() { d.saved(agents, err) })
		done(err == nil)
	})
}

// saved handles the result of a save, and starts the next one if it was requested in the
// meantime.
func (d *Directory) saved(agents []*agent, err error) {
	d.saving = time.Time{}
	if err != nil {
		for _, a := range agents {
			a.dirty = true
		}
		d.notices.Report(notice.Notice{
			Kind: notice.StoreFailed, Level: slog.LevelError, Err: err,
			Text: "checkpoints can't be stored; counting continues, but a crash may lose events or count them twice; check the storage extension",
		})
	}
	if waiting := d.waiting; len(waiting) > 0 {
		d.waiting = nil
		d.save(func(stored bool) {
			for _, done := range waiting {
				done(stored)
			}
		})
	}
}

// retire drops the agents that have exited and are inactive.
func (d *Directory) retire() {
	now := d.cfg.Now()
	for _, a := range d.agents {
		if a.loading || a.open() > 0 || !d.isInactive(a, now) {
			continue
		}
		if d.cfg.Saver != nil {
			d.cfg.Saver.Forget(checkpoint.Key(a.id))
		}
		d.report(a.newest.file, info(notice.MPStoreRetired, fmt.Sprintf(
			"agent %q exited and counted nothing for %v, so it is no longer reported; its stores are not removed", a.name, d.cfg.StaleAfter)))
		d.drop(a)
	}
}

// isInactive reports whether an agent has counted nothing for StaleAfter, and all its
// values were delivered.
func (d *Directory) isInactive(a *agent, now time.Time) bool {
	return now.Sub(a.changed) >= d.cfg.StaleAfter && !a.delivered.Before(a.changed)
}

// drop deletes an agent. Its stores aren't read again.
func (d *Directory) drop(a *agent) {
	delete(d.agents, a.id)
	d.order = slices.DeleteFunc(d.order, func(b *agent) bool { return b == a })
	for _, p := range a.processes {
		d.close(a, p)
	}
	d.cfg.Rings.Remove(a.id)
}

func info(k notice.Kind, text string) notice.Notice {
	return notice.Notice{Kind: k, Level: slog.LevelInfo, Text: text}
}

func warn(k notice.Kind, text string, err error) notice.Notice {
	return notice.Notice{Kind: k, Level: slog.LevelWarn, Text: text, Err: err}
}
