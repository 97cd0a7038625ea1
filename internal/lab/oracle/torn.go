// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"slices"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Torn counts torn groups, transfers with missing events: it keeps the events of the group and compares
// them with those of a whole group.
type Torn struct {
	group   []ringbuf.Type
	begun   bool // whether the group's beginning was seen
	written []ringbuf.Type
	n       uint64
}

// wholeGroups are the events of a transfer, by direction.
var wholeGroups = [][]ringbuf.Type{
	{ringbuf.TypeXferPostTime, ringbuf.TypeXferTime, ringbuf.TypeTxBytes, ringbuf.TypeTxRequests},
	{ringbuf.TypeXferPostTime, ringbuf.TypeXferTime, ringbuf.TypeRxBytes, ringbuf.TypeRxRequests},
}

// Count returns the number of torn groups that have ended.
func (t *Torn) Count() uint64 { return t.n }

// Add adds an event.
func (t *Torn) Add(e ringbuf.Type) {
	switch {
	case int(e) >= ringbuf.Types:
		return // may or may not belong to the group
	case !slices.Contains(wholeGroups[0], e) && !slices.Contains(wholeGroups[1], e):
		t.end()
		t.begun = true
		return
	case !t.continues(e):
		t.end()
	}
	if e == ringbuf.TypeXferPostTime {
		t.begun = true
	}
	t.group = append(t.group, e)
	if !slices.Contains(t.written, e) {
		t.written = append(t.written, e)
	}
	if e == ringbuf.TypeTxRequests || e == ringbuf.TypeRxRequests {
		t.end()
	}
}

// continues reports whether e may follow the events of the group.
func (t *Torn) continues(e ringbuf.Type) bool {
	for _, whole := range wholeGroups {
		rest := whole
		for _, seen := range append(slices.Clone(t.group), e) {
			i := slices.Index(rest, seen)
			if i < 0 {
				rest = nil
				break
			}
			rest = rest[i+1:]
		}
		if rest != nil {
			return true
		}
	}
	return false
}

func (t *Torn) end() {
	if len(t.group) > 0 && t.begun && t.missing() {
		t.n++
	}
	if len(t.group) > 0 {
		t.begun = true
	}
	t.group = nil
}

// skip discards the group, because events are missing.
func (t *Torn) skip() { t.group, t.begun = nil, false }

// missing reports whether the group lacks an event that the agent writes, for every
// direction that the group may have.
func (t *Torn) missing() bool {
	for _, whole := range wholeGroups {
		fits := true
		for _, e := range t.group {
			fits = fits && slices.Contains(whole, e)
		}
		for _, e := range whole {
			fits = fits && (slices.Contains(t.group, e) || !slices.Contains(t.written, e))
		}
		if fits {
			return false
		}
	}
	return true
}
