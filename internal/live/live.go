// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package live defines what the receiver serves on its socket: the totals of all agents, and
// their slow transfers. The receiver has the server; [Client] is the other end.
//
// A client sends a [Request], and gets a [Frame]. Each is a line of JSON. Nothing is sent
// without a request, so a client chooses how often it gets a frame, and a client that asks
// for nothing costs nothing. Each side ignores fields that it doesn't know. To look at a
// frame:
//
//	echo '{}' | socat - UNIX-CONNECT:/run/nixl-otel/receiver.sock
package live

import (
	"time"
)

const (
	// Version is the version of requests and frames. It changes only if an older program
	// would misunderstand them.
	Version = 1
	// DefaultSocket is where nixlring looks for the receiver.
	DefaultSocket = "/run/nixl-otel/receiver.sock"
)

// Request asks for a frame.
type Request struct {
	// Version is that of the client; 0 accepts any.
	Version int `json:"version,omitempty"`
	// Transfers begins to collect transfers for this client, for the frames from the next one
	// on. Nil ends it.
	Transfers *Conditions `json:"transfers,omitempty"`
	// NoTotals leaves out the totals. The frame has only the agents with transfers.
	NoTotals bool `json:"no_totals,omitempty"`
}

// Conditions select transfers: those that meet any of them. 0 disables a condition. See
// [tally.Slow].
type Conditions struct {
	SlowTransfer  uint64 `json:"slow_transfer_us,omitempty"` // longer than this
	MinThroughput uint64 `json:"min_throughput,omitempty"`   // fewer bytes per second
	// Most limits the transfers of each agent in a frame to the slowest ones.
	Most int `json:"most"`
}

// Frame is the state of all agents at one time.
type Frame struct {
	Version int       `json:"version"`
	Time    time.Time `json:"time"`
	Host    string    `json:"host"` // host.name of the agents
	// Error says why the frame has no agents. The server then closes the connection.
	Error string `json:"error,omitempty"`
	// Problem says why rings can't be read, or is empty.
	Problem   string      `json:"problem,omitempty"`
	Collector Collector   `json:"collector"`
	Bounds    [][]float64 `json:"bounds,omitempty"` // see Histogram.Bounds
	Agents    []Agent     `json:"agents"`           // by ID
}

// Collector describes the server.
type Collector struct {
	PID      int    `json:"pid"` // in its own PID namespace
	Program  string `json:"program"`
	Consumes bool   `json:"consumes"` // false if it only observes the rings
}

// Agent is the state of an agent. Its totals count from Start.
type Agent struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Path       string            `json:"path"` // as the server sees it
	Attributes map[string]string `json:"attributes,omitempty"`
	Layout     string            `json:"layout,omitempty"`
	Store      bool              `json:"store,omitempty"` // it has stores instead of a ring
	Start      time.Time         `json:"start,omitzero"`
	Up         *bool             `json:"up"` // nil if the kernel can't tell
	Ring       *Ring             `json:"ring,omitempty"`
	Totals     *Totals           `json:"totals,omitempty"`

	Transfers []Transfer `json:"transfers,omitempty"` // since the previous frame, in order
	Omitted   uint64     `json:"transfers_omitted,omitempty"`
}

// Ring is the state of a ring. Its counters count from Agent.Start.
type Ring struct {
	Capacity      int    `json:"capacity"` // slots; a ring holds one event less
	Peak          int    `json:"peak"`     // most events in the ring since the previous frame
	Saturations   uint64 `json:"saturations"`
	Restarts      uint64 `json:"restarts"`
	LossyRestarts uint64 `json:"lossy_restarts"`
	TornGroups    uint64 `json:"torn_groups"`
	ForeignReads  uint64 `json:"foreign_reads"`
	Misses        uint64 `json:"misses"`
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

// Transfer is a transfer that meets a condition of the client.
type Transfer struct {
	Time    time.Time `json:"time"`           // of recording, with layout v1; else of reading
	Read    bool      `json:"read,omitempty"` // Time is that of reading
	Receive bool      `json:"receive,omitempty"`
	Bytes   uint64    `json:"bytes"`
	Took    uint64    `json:"transfer_time_us"`
	Post    uint64    `json:"post_time_us"`
	Cause   string    `json:"cause"` // slow_transfer or min_throughput, as in the receiver's logs
}
