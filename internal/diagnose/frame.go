// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// Frame is the state of all agents at one time.
type Frame struct {
	Time   time.Time `json:"time"`
	Agents []Agent   `json:"agents"`          // sorted by ID
	Notes  []string  `json:"notes,omitempty"` // what the frame may lack, and why
	// Processes are those that use NIXL on the host, in a recording.
	Processes []Process `json:"processes,omitempty"`
	Links     []Link    `json:"links,omitempty"` // of the host; none if its RDMA ports can't be read
}

// Agent returns the agent with an ID, or nil.
func (f *Frame) Agent(id string) *Agent {
	i, ok := slices.BinarySearchFunc(f.Agents, id, func(a Agent, id string) int { return strings.Compare(a.ID, id) })
	if !ok {
		return nil
	}
	return &f.Agents[i]
}

// Agent is the state of an agent at one time. Its counters count from Start, or from the oldest event that was
// still in its ring. They may start again at 0.
type Agent struct {
	Identity
	Path       string            `json:"path,omitempty"` // as this process sees it
	Attributes map[string]string `json:"attributes,omitempty"`
	Layout     string            `json:"layout,omitempty"`
	Store      bool              `json:"store,omitempty"` // it has stores of NIXL's prometheus_mp exporter instead of a ring
	Start      time.Time         `json:"start,omitzero"`
	Up         Up                `json:"up"`

	Moved [2]Moved `json:"moved"` // writes and reads
	// Undivided reports whether only the sum of the times of writes and reads is known.
	Undivided bool `json:"undivided,omitempty"`

	Post    float64           `json:"post_seconds"`
	Errors  map[string]uint64 `json:"errors,omitempty"` // by error.type
	Events  uint64            `json:"events"`
	Dropped uint64            `json:"events_dropped"`           // by the agent, before they reached the ring
	Unknown map[string]uint64 `json:"events_unknown,omitempty"` // by name
	Memory  *int64            `json:"memory_bytes"`             // registered; nil if registrations may be missing

	Ring *Ring `json:"ring,omitempty"` // nil for stores

	Times Histogram `json:"times"` // of transfers, in seconds
	Sizes Histogram `json:"sizes"` // in bytes

	// Before is the number of transfers that its ring remembered when it was opened, whether or not they were
	// consumed. Remembered is their older half.
	Before     uint64   `json:"transfers_before,omitempty"`
	Remembered [2]Moved `json:"remembered,omitzero"`

	sums *totals // see history

	Transfers []Transfer `json:"transfers,omitempty"` // since the frame before: the slowest, or all slow ones
}

// Moved is the completed transfers of one direction.
type Moved struct {
	Bytes     uint64  `json:"bytes"`
	Transfers uint64  `json:"transfers"`
	Seconds   float64 `json:"transfer_seconds"`
}

func (m Moved) plus(n Moved) Moved {
	return Moved{m.Bytes + n.Bytes, m.Transfers + n.Transfers, m.Seconds + n.Seconds}
}

func (m Moved) minus(n Moved) Moved {
	return Moved{m.Bytes - n.Bytes, m.Transfers - n.Transfers, m.Seconds - n.Seconds}
}

// since returns the increases since a state before. Fewer transfers mean that the counters started again at 0. The time of a
// direction may decrease slightly, because that of all transfers is divided between the directions.
func (m Moved) since(before Moved) Moved {
	if m.Transfers < before.Transfers || m.Bytes < before.Bytes {
		return m
	}
	return m.minus(before)
}

// Ring is the state of an agent's ring.
type Ring struct {
	Capacity        int       `json:"capacity"` // slots; a ring holds one event less
	Peak            int       `json:"peak"`     // most events in the ring since the frame before
	Saturations     uint64    `json:"saturations"`
	Restarts        uint64    `json:"restarts"`
	Torn            uint64    `json:"torn_groups"`
	Foreign         uint64    `json:"foreign_reads"`
	Misses          uint64    `json:"misses"`
	Consumer        *Consumer `json:"consumer,omitempty"` // the process that holds its lock
	ConsumerUnknown bool      `json:"consumer_unknown,omitempty"`
}

// Consumer is a process that takes the events of a ring.
type Consumer struct {
	PID  int    `json:"pid"`
	Name string `json:"name,omitempty"`
}

// String returns a short name.
func (c *Consumer) String() string { return cmp.Or(c.Name, "a process") }

// Fill returns the peak of the ring as a share of its capacity.
func (a *Agent) Fill() float64 {
	if a.Ring == nil || a.Ring.Capacity < 2 {
		return 0
	}
	return min(1, float64(a.Ring.Peak)/float64(a.Ring.Capacity-1))
}

// Both returns the sum of both directions.
func (a *Agent) Both() Moved { return a.Moved[0].plus(a.Moved[1]) }

// Failed returns the number of failed operations that weren't canceled.
func (a *Agent) Failed() (n uint64) {
	for kind, count := range a.Errors {
		if kind != Canceled {
			n += count
		}
	}
	return n
}

// Transfer is a completed transfer.
type Transfer struct {
	Time    time.Time `json:"time"`            // when it was recorded, with layout v1; else when it was read
	Read    bool      `json:"time_of_reading"` // whether Time is that of reading
	Receive bool      `json:"receive"`
	Bytes   uint64    `json:"bytes"`
	Took    float64   `json:"transfer_seconds"`
	Post    float64   `json:"post_seconds"`
}

// Speed returns the transfer's bytes per second, as in the metric: rounded down, and a time of 0 µs counts as 1 µs.
func (t *Transfer) Speed() float64 {
	const shortest = 1e-6
	return math.Floor(float64(t.Bytes) / max(t.Took, shortest))
}

// Job identifies agents that do the same work.
type Job struct {
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Service   string `json:"service,omitempty"`
}

// Identity identifies an agent. Agents are told apart by their ID.
type Identity struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Job
	Pod  string `json:"pod,omitempty"`
	Host string `json:"host,omitempty"`
}

// Up is whether an agent is running.
type Up uint8

// The values of [Up].
const (
	Unknown Up = iota
	No
	Yes
)

// String returns yes, no or ?.
func (u Up) String() string { return [...]string{"?", "no", "yes"}[u] }

// MarshalJSON returns true, false or null.
func (u Up) MarshalJSON() ([]byte, error) {
	return []byte([...]string{"null", "false", "true"}[u]), nil
}

// UnmarshalJSON is the reverse of [Up.MarshalJSON].
func (u *Up) UnmarshalJSON(text []byte) error {
	*u = map[string]Up{"true": Yes, "false": No}[string(text)]
	return nil
}

// Canceled is the error type of operations that the application canceled. They aren't errors.
const Canceled = "canceled"

// NotFound is the error type of look-ups that found nothing, which may be expected.
const NotFound = "not_found"
