// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import "github.com/nixl-otel/nixl-otel/ringbuf"

// kind is the kind of an event: one of NIXL's types, or one of the events of layout V1 that only
// have a name.
type kind uint8

// Events that backends and applications may write in layout V1. The names are invented.
const (
	kindBackendProgress = kind(ringbuf.Types) + iota
	kindBackendMessages
	kindPeerConnected
	kindAgentStarted
	kindBlocksReused
	kinds
)

var named = [kinds - kind(ringbuf.Types)]ringbuf.Event{
	kindBackendProgress - kind(ringbuf.Types): ringbuf.NewNamedEvent(ringbuf.CategoryBackend, "ucx_progress_calls", 0),
	kindBackendMessages - kind(ringbuf.Types): ringbuf.NewNamedEvent(ringbuf.CategoryBackend, "ucx_am_messages", 0),
	kindPeerConnected - kind(ringbuf.Types):   ringbuf.NewNamedEvent(ringbuf.CategoryConnection, "peer_connected", 0),
	kindAgentStarted - kind(ringbuf.Types):    ringbuf.NewNamedEvent(ringbuf.CategorySystem, "agent_started", 0),
	kindBlocksReused - kind(ringbuf.Types):    ringbuf.NewNamedEvent(ringbuf.CategoryCustom, "kv_blocks_reused", 0),
}

// templates are events without a value, by kind.
var templates = func() (t [kinds]ringbuf.Event) {
	for k := range kinds {
		if int(k) < ringbuf.Types {
			t[k] = ringbuf.NewEvent(ringbuf.Type(k), 0)
		} else {
			t[k] = named[k-kind(ringbuf.Types)]
		}
	}
	return t
}()

// inRing returns an event as a reader finds it in a ring of a layout.
func inRing(l ringbuf.Layout, e ringbuf.Event) ringbuf.Event {
	if l.Named() && !e.Named {
		e.Named, e.Name = true, ringbuf.MakeName(e.Type.LegacyName())
	}
	return e
}
