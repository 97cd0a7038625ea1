// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import "github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"

// probeAll probes all open rings. It sends a result even if nothing changed: the
// owner may have received an earlier result before the ring.
func (t *tracker) probeAll() {
	for _, r := range t.records {
		if r.ring != nil && t.ctx.Err() == nil {
			t.probe(r, true)
		}
	}
}

// probe asks the kernel whether another process has a ring open, and sends the
// result to the owner. Where the kernel can't tell, a search for processes decides; with
// again, its earlier result is checked.
func (t *tracker) probe(r *record, again bool) {
	attended, err := r.ring.Attended()
	known, decided := err == nil, true
	if !known {
		if again {
			t.seekAgain(r)
		}
		attended, known, decided = t.maps(r)
		r.unmapped = known && !attended
	}
	if !decided {
		return
	}
	m := drain.Attended{ID: r.ID, Reader: r.ring, Open: attended, Known: known}
	if m.Known && !m.Open {
		r.exitInfo = r.info
	}
	t.send(m)
	if m.Known && !m.Open && (t.cfg.CloseExited || t.stopped) {
		t.send(drain.Gone{ID: r.ID, Reader: r.ring})
	}
}
