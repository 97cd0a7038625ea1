// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"strings"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

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

// name returns the event's name in a ring of a layout.
func (k kind) name(l ringbuf.Layout) string {
	if int(k) < ringbuf.Types && l.Named() {
		return ringbuf.Type(k).LegacyName()
	}
	return templates[k].EventName()
}

// category returns the catalog's name for the event's category.
func (k kind) category() string {
	if ringbuf.Type(k) == ringbuf.TypeEventsDropped {
		return semconv.CategoryTelemetry
	}
	switch templates[k].Category {
	case ringbuf.CategoryMemory:
		return semconv.CategoryMemory
	case ringbuf.CategoryTransfer:
		return semconv.CategoryTransfer
	case ringbuf.CategoryConnection:
		return semconv.CategoryConnection
	case ringbuf.CategoryBackend:
		return semconv.CategoryBackend
	case ringbuf.CategoryError:
		return semconv.CategoryError
	case ringbuf.CategoryPerformance:
		return semconv.CategoryPerformance
	case ringbuf.CategorySystem:
		return semconv.CategorySystem
	case ringbuf.CategoryCustom:
		return semconv.CategoryCustom
	default:
		return semconv.CategoryUnknown
	}
}

// errorType returns the catalog's error.type of an error event.
func errorType(t ringbuf.Type) string { return strings.TrimPrefix(t.String(), "agent_err_") }

// kindOf returns the kind of an event that a simulated agent has written.
func kindOf(e *ringbuf.Event) (kind, bool) {
	if !e.Named {
		return kind(e.Type), int(e.Type) < ringbuf.Types
	}
	k, ok := kindsByName[e.Name]
	return k, ok
}

var kindsByName = func() map[ringbuf.Name]kind {
	m := make(map[ringbuf.Name]kind, kinds)
	for k := range kinds {
		m[ringbuf.MakeName(k.name(ringbuf.V1))] = k
	}
	return m
}()
