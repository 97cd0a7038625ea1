// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Two containers of a pod may each have an agent of the same name, in directories of their
// own. If both run at the same time, they aren't one agent that has moved. The second one is
// set apart: the ID of its container becomes part of its own ID. It stays so
//
//   - while its container runs, because its record keeps that.
//   - when this process restarts, because its totals are stored under that ID. Without
//     storage, the agent of the older process is the first one, because the directory of
//     the other one isn't walked before; see [Watcher.update].

// apartID returns the ID of an agent that is set apart, or "" if its container isn't known or
// is part of its ID anyway.
func (t *tracker) apartID(id string) string {
	container := t.cfg.Holder.Container
	if container == "" || strings.Contains(id, container) {
		return ""
	}
	return ByContainer + " " + container + " " + id
}

// identity returns the ID of an agent, which is id unless the agent is set apart.
func (t *tracker) identity(r *record, id string) (string, error) {
	apart := t.apartID(id)
	if apart == "" {
		return id, nil
	}
	if !r.apart {
		stored, known := t.cfg.Stored(apart)
		if !known && t.awaitStored(r) {
			return "", errUndecided
		}
		r.apart = stored
	}
	if r.apart {
		return apart, nil
	}
	return id, nil
}

// probeLife is how long a probe of the other agent counts.
const probeLife = 10 * time.Second

// refuseRing closes a ring whose agent has the ID of another agent. If that one is in another
// container, and still runs when it is probed, the agent is set apart. Otherwise, the ring is
// opened again later.
func (d *Directory) refuseRing(a drain.Agent, other drain.Running, ring *ringbuf.Reader) {
	d.closeRing(ring)
	r := d.records[a.Path]
	if r == nil || r.ring != ring {
		return
	}
	r.ring, r.known = nil, false
	if r.state != open {
		return
	}
	if r.apart || other.Agent.Holder == d.cfg.Holder || d.apartID(r.ID) == "" {
		wait := nextBackoff(r.refusedWait, firstRetry)
		d.refuse(r, r.info, errIdentity)
		r.refusedWait, r.wait = wait, wait
		return
	}
	d.setState(r, refused)
	r.info, r.tried, r.wait = files.Info{}, d.cfg.Now(), firstRetry // if the probe hangs
	d.schedule(r)
	now := d.cfg.Now()
	if now.Sub(r.probed) <= probeLife {
		r.apart, r.wait = true, 0
		d.reportOnce(r, notice.Notice{
			Kind: notice.AgentApart, Level: slog.LevelInfo,
			Text: "an agent with the same identity runs in " + other.Agent.Holder.String() + ", so the ID of the container becomes part of " +
				"this agent's identity; give agents unique names to keep their identities when containers restart",
		})
		d.checkPath(r)
		return
	}
	r.probed = now
	other.Source.Probe(func() {
		d.worker.Submit(func() {
			if r := d.records[a.Path]; r != nil && r.state == refused {
				r.wait = 0
				d.checkPath(r)
			}
		})
	})
}

// firstWalk is how long a directory waits for the first walk of another one.
const firstWalk = time.Second

// waitFirst waits until the directory may be walked for the first time.
func (d *Directory) waitFirst(ctx context.Context) {
	if d.after == nil {
		return
	}
	timer := time.NewTimer(firstWalk)
	defer timer.Stop()
	select {
	case <-d.after:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// inOrder returns the keys of new directories in the order in which they must be walked.
func inOrder(found map[string]Location, isNew func(key string) bool) (keys []string) {
	for key := range found {
		if isNew(key) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(found[a].Since(), found[b].Since()), cmp.Compare(a, b))
	})
	return keys
}
