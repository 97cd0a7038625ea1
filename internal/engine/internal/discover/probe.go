// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/process"
)

// probeAll probes all open rings. It sends a result even if nothing changed: the
// owner may have received an earlier result before the ring.
func (t *tracker) probeAll() {
	for _, r := range t.records {
		if r.ring != nil && t.ctx.Err() == nil {
			t.probe(r)
		}
	}
}

// probe asks the kernel whether another process has a ring open, and sends the
// result to the owner.
func (t *tracker) probe(r *record) {
	attended, err := r.ring.Attended()
	if attended && err == nil {
		attended = t.hasAgent(r)
	}
	m := drain.Attended{ID: r.ID, Reader: r.ring, Open: attended, Known: err == nil}
	if m.Known && !m.Open {
		r.exitInfo = r.info
	}
	t.send(m)
	if m.Known && !m.Open && (t.cfg.CloseExited || t.stopped) {
		t.send(drain.Gone{ID: r.ID, Reader: r.ring})
	}
}

// hasAgent reports whether a ring that some process has open may have an agent.
func (t *tracker) hasAgent(r *record) bool {
	now := t.cfg.Now()
	position, err := r.ring.WritePosition()
	if err != nil || position != r.written || r.writtenAt.IsZero() {
		r.written, r.writtenAt = position, now
		t.cfg.Rings.alive.forget(idOf(r.ring))
	}
	return now.Sub(r.writtenAt) < usersInterval || !t.cfg.Rings.alive.isAbandoned(idOf(r.ring), r.info, now)
}

// findAgents searches for the processes of rings that nothing else is known about.
func (t *tracker) findAgents() {
	now := t.cfg.Now()
	if wanted := t.cfg.Rings.alive.due(now); len(wanted) > 0 {
		t.searches.Go(func() { t.cfg.Rings.alive.search(t.ctx, wanted, now) })
	}
}

// sharedInterval is the minimum interval between searches for shared rings. A
// search reads the mappings of all processes, which takes up to a second on a large
// machine.
const sharedInterval = time.Minute

// checkShared searches for agents that share a ring, on a separate goroutine. Only
// restarted rings are candidates: an agent that starts under the name of another
// one resets their ring.
func (t *tracker) checkShared() {
	now := t.cfg.Now()
	if len(t.restarted) == 0 || now.Sub(t.sharedChecked) < sharedInterval {
		return
	}
	rings := t.restarted
	t.restarted, t.sharedChecked = make(map[files.ID]string), now
	t.searches.Go(func() { t.reportShared(rings) })
}

// reportShared reports the rings that several processes write to.
func (t *tracker) reportShared(rings map[files.ID]string) {
	wanted := make(map[files.ID]string)
	for id := range rings {
		wanted[id] = ""
	}
	users, err := process.FindUsers(t.ctx, "/proc", wanted)
	if err != nil { // without /proc, there are no results
		return
	}
	for id, path := range rings {
		pids := rivals(users.Agents(id))
		if len(pids) > 1 {
			t.report(notice.Notice{
				Kind: notice.RingShared, Level: slog.LevelWarn, Path: path,
				Text: fmt.Sprintf("processes %s write to this ring at the same time and lose each other's events; give each agent a unique name",
					strings.Join(pids, ", ")),
			})
		}
	}
}

// rivals returns the PIDs of processes whose parent isn't one of them: a fork inherits the
// mapping.
func rivals(list []process.User) (pids []string) {
	for _, u := range list {
		if !slices.ContainsFunc(list, func(other process.User) bool { return other.PID == u.Parent }) {
			pids = append(pids, strconv.Itoa(u.PID))
		}
	}
	return pids
}
