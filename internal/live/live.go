// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package live describes the state of all agents at one time: their totals and transfers. A
// [Frame] is what nixlring works with, and prints as JSON.
package live

import (
	"time"
)

// Frame is the state of all agents at one time.
type Frame struct {
	Time   time.Time `json:"time"`
	Agents []Agent   `json:"agents"` // by ID
}

// Agent is the state of an agent. Its totals count from Start.
type Agent struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Path       string            `json:"path"` // as this process sees it
	Attributes map[string]string `json:"attributes,omitempty"`
	Layout     string            `json:"layout,omitempty"`
	Store      bool              `json:"store,omitempty"` // it is a process with a store instead of a ring
	Start      time.Time         `json:"start,omitzero"`
	Up         *bool             `json:"up"` // nil if the kernel can't tell
	Ring       *Ring             `json:"ring,omitempty"`
	Totals     *Totals           `json:"totals,omitempty"`

	Transfers []Transfer `json:"transfers,omitempty"` // since the previous frame, in order
	Omitted   uint64     `json:"transfers_omitted,omitempty"`
}

// Ring is the state of a ring. Its counters count from Agent.Start.
type Ring struct {
	Capacity     int    `json:"capacity"` // slots; a ring holds one event less
	Peak         int    `json:"peak"`     // most events in the ring since the previous frame
	Saturations  uint64 `json:"saturations"`
	Restarts     uint64 `json:"restarts"`
	TornGroups   uint64 `json:"torn_groups"`
	ForeignReads uint64 `json:"foreign_reads"`
	Misses       uint64 `json:"misses"`
}

// Totals are counters. Times are in microseconds.
type Totals struct {
	Transmitted uint64            `json:"transmit_bytes"`
	Received    uint64            `json:"receive_bytes"`
	Transfers   uint64            `json:"transfers"`
	Busy        uint64            `json:"transfer_time_us"`
	Post        uint64            `json:"post_time_us"`
	Errors      map[string]uint64 `json:"errors,omitempty"` // by error.type
	Events      uint64            `json:"events"`
	Dropped     uint64            `json:"events_dropped"`
	Memory      *int64            `json:"memory_bytes"` // nil if registrations may be missing

	Durations     Histogram `json:"durations"`      // seconds
	PostDurations Histogram `json:"post_durations"` // seconds
	Throughput    Histogram `json:"throughput"`     // bytes per second, of both directions
	Sizes         Histogram `json:"sizes"`          // bytes, of both directions
}

// Transfer is a transfer that meets a condition of the watch.
type Transfer struct {
	Time    time.Time `json:"time"`           // of recording, with layout v1; else of reading
	Read    bool      `json:"read,omitempty"` // Time is that of reading
	Receive bool      `json:"receive,omitempty"`
	Bytes   uint64    `json:"bytes"`
	Took    uint64    `json:"transfer_time_us"`
	Post    uint64    `json:"post_time_us"`
	Cause   string    `json:"cause"` // slow_transfer or min_throughput, as in the receiver's logs
}
