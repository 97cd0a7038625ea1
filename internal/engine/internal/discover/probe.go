// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import "github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"

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
	m := drain.Attended{ID: r.ID, Reader: r.ring, Open: attended, Known: err == nil}
	if m.Known && !m.Open {
		r.exitInfo = r.info
	}
	t.send(m)
	if m.Known && !m.Open && (t.cfg.CloseExited || t.stopped) {
		t.send(drain.Gone{ID: r.ID, Reader: r.ring})
	}
}
