// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import "github.com/nixl-otel/nixl-otel/internal/lab/oracle"

// Totals count what one or more agents did. The field names of their JSON are stable.
type Totals struct {
	Layout   string `json:"layout"`   // of the newest life; "mixed" in a sum of different layouts
	Capacity int    `json:"capacity"` // of the newest life; 0 in a sum of different capacities
	Starts   int    `json:"starts"`   // number of lives
	Flushes  uint64 `json:"flushes"`

	Operations uint64 `json:"operations"` // attempted transfers
	Failed     uint64 `json:"failed"`     // transfers that ended in an error

	// Every event belongs to exactly one of these.
	Written        uint64 `json:"written"`         // reached the ring
	DroppedStaging uint64 `json:"dropped_staging"` // staging was full
	DroppedRing    uint64 `json:"dropped_ring"`    // the ring was full
	Discarded      uint64 `json:"discarded"`       // the life ended without a flush

	// These events are also in Written.
	Unread  uint64 `json:"unread_at_restart"` // in the ring when a later life reused it
	Pending int    `json:"pending_at_end"`    // in the ring when the newest life ended

	// Points are the metrics of the written events, if the agent has a journal. A sum has none.
	Points oracle.Points `json:"points,omitempty"`
}

// Dropped returns the number of events that didn't reach the ring.
func (t *Totals) Dropped() uint64 { return t.DroppedStaging + t.DroppedRing + t.Discarded }

// Totals returns the agent's totals so far.
func (a *Agent) Totals() Totals {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.counts()
	if a.cfg.Journal != nil {
		t.Points = a.cfg.Journal.Points()
	}
	return t
}

func (a *Agent) counts() Totals {
	s := &a.staging
	t := Totals{
		Starts: a.started, Flushes: a.flushes,
		Operations: a.operations, Failed: a.failed,
		Written: s.written, DroppedStaging: s.stagingFull, DroppedRing: s.ringFull, Discarded: s.discarded,
		Unread: a.unread, Pending: a.pending,
	}
	if a.started > 0 {
		t.Layout, t.Capacity = s.layout.String(), s.capacity
	}
	if a.w != nil {
		t.Pending, _ = a.w.Len() // the next flush reports an error of the ring
	}
	return t
}

// Sum returns the sum of the totals of several agents.
func Sum(all ...Totals) (s Totals) {
	for i, t := range all {
		if i == 0 {
			s.Layout, s.Capacity = t.Layout, t.Capacity
		}
		if s.Layout != t.Layout {
			s.Layout = "mixed"
		}
		if s.Capacity != t.Capacity {
			s.Capacity = 0
		}
		s.Starts += t.Starts
		s.Flushes += t.Flushes
		s.Operations += t.Operations
		s.Failed += t.Failed
		s.Written += t.Written
		s.DroppedStaging += t.DroppedStaging
		s.DroppedRing += t.DroppedRing
		s.Discarded += t.Discarded
		s.Unread += t.Unread
		s.Pending += t.Pending
	}
	return s
}
