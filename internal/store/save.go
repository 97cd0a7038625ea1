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

// loadWait is how long an agent waits for its checkpoint.
const loadWait = 5 * time.Second

// newAgent adds an agent for a process. With a saver, it isn't reported until its checkpoint is
// there.
func (d *Directory) newAgent(id string, p *process) {
	now := d.cfg.Now()
	a := &agent{
		id: id, name: p.agent, host: p.host, changed: now,
		counted: make(map[string]time.Time),
	}
	d.agents[id] = a
	a.loading, a.loadBy, a.processes = true, now.Add(loadWait), []*process{p}
	if d.cfg.Saver == nil {
		d.loaded(a, nil, nil)
	} else {
		d.cfg.Saver.Load(checkpoint.Key(id), func(value []byte, err error) {
			d.worker.Ask(func() { d.loaded(a, value, err) })
		})
	}
}

// loaded gives an agent its checkpoint, and lets the processes count that were
// found meanwhile.
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
			"checkpoint of agent %q can't be used, so its totals start over with the stores that are there", a.name), err))
	case value != nil:
		a.restore(&s, d.cfg.Now())
	}
	for _, p := range found {
		d.admit(a, p)
	}
	d.settle(a)
}

// admit lets a process count, unless it exited so long ago that it is nothing but
// a file that nobody has removed.
func (d *Directory) admit(a *agent, p *process) {
	_, counted := a.counted[p.file]
	counts := slices.ContainsFunc(a.processes, func(q *process) bool { return q.file == p.file })
	if p.up == drain.UpNo && !counted && !counts && d.left(p) {
		d.close(a, p)
		return
	}
	d.join(a, p)
}

// left reports whether a process last counted something too long ago to be
// reported, or before the machine was last started.
func (d *Directory) left(p *process) bool {
	uptime, err := d.cfg.Uptime()
	age := uptime - time.Duration(p.updated)
	return err == nil && (age >= d.cfg.StaleAfter || age < -time.Second)
}

// settle drops an agent of which nothing is worth reporting, and counts the
// processes of a checkpoint whose stores are gone.
func (d *Directory) settle(a *agent) {
	if a.newest == nil {
		d.drop(a)
		return
	}
	for i := 0; i < len(a.processes); {
		p := a.processes[i]
		if p.open != nil || !d.gone(p.file) {
			i++
			continue
		}
		d.report(p.file, warn(notice.MPStoreLost, fmt.Sprintf(
			"store of agent %q was removed before its last values were read; what its process counted after the last checkpoint is missing from the totals", a.name), nil))
		d.fold(a, p)
	}
}

// loadDue stops waiting for checkpoints that don't arrive.
func (d *Directory) loadDue() {
	now := d.cfg.Now()
	for _, a := range d.agents {
		if a.loading && !now.Before(a.loadBy) {
			d.loaded(a, nil, fmt.Errorf("it wasn't read within %v; check the storage extension", loadWait))
		}
	}
}

// save stores the agents that have changed, and then calls done. If a save is
// under way, it does that afterwards, unless that one hangs.
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
	d.urgent = false
	if len(ops) == 0 {
		done(true)
		return
	}
	d.saving = now
	d.cfg.Saver.Save(ops, func(err error) {
		d.worker.Ask(func() { d.saved(agents, err) })
		done(err == nil)
	})
}

// saved begins the save that was asked for meanwhile.
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

// retire drops the agents that have exited long ago and were delivered since.
func (d *Directory) retire() {
	now := d.cfg.Now()
	for _, a := range d.agents {
		if a.loading || a.open() > 0 || !d.silent(a, now) {
			continue
		}
		if d.cfg.Saver != nil {
			d.cfg.Saver.Forget(checkpoint.Key(a.id))
		}
		d.report(a.newest.file, info(notice.MPStoreRetired, fmt.Sprintf(
			"agent %q exited and counted nothing for %v, so it is no longer reported; its stores are left", a.name, d.cfg.StaleAfter)))
		d.drop(a)
	}
}

// silent reports whether an agent has counted nothing for long, and everything
// that it counted was delivered.
func (d *Directory) silent(a *agent, now time.Time) bool {
	return now.Sub(a.changed) >= d.cfg.StaleAfter && !a.delivered.Before(a.changed)
}

// drop forgets an agent. Its stores are left alone while they are there.
func (d *Directory) drop(a *agent) {
	delete(d.agents, a.id)
	for _, p := range a.processes {
		d.close(a, p)
	}
	d.cfg.Rings.Leave(a.id)
}

func info(k notice.Kind, text string) notice.Notice {
	return notice.Notice{Kind: k, Level: slog.LevelInfo, Text: text}
}

func warn(k notice.Kind, text string, err error) notice.Notice {
	return notice.Notice{Kind: k, Level: slog.LevelWarn, Text: text, Err: err}
}
