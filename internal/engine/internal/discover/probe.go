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
// result to the owner. Where the kernel can't tell, the last search for processes decides.
func (t *tracker) probe(r *record) {
	attended, err := r.ring.Attended()
	known := err == nil
	if !known {
		_, mapped := t.cfg.Identify(r.Agent, r.ring, r.sought)
		if mapped == Sought {
			return
		}
		attended, known = mapped == IsMapped, mapped != MaybeMapped
	}
	if known && !attended {
		r.exitInfo = r.info
	}
	t.send(drain.Attended{ID: r.ID, Reader: r.ring, Open: attended, Known: known})
	if known && !attended && (t.cfg.CloseExited || t.stopped) {
		t.send(drain.Gone{ID: r.ID, Reader: r.ring})
	}
}
