// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import "time"

// Job identifies agents that do the same work.
type Job struct {
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Service   string `json:"service,omitempty"`
}

// Agent identifies an agent.
type Agent struct {
	Job
	Pod  string `json:"pod,omitempty"`
	Host string `json:"host,omitempty"`
	Name string `json:"name"`
	ID   string `json:"id,omitempty"` // tells agents of the same name apart
}

// Up is whether an agent is running.
type Up uint8

// The values of [Up].
const (
	Unknown Up = iota
	No
	Yes
)

// Canceled is the error type of operations that the application canceled. They aren't errors.
const Canceled = "canceled"

// NotFound is the error type of look-ups that found nothing, which may be expected.
const NotFound = "not_found"

// Histogram has a count per bucket. Bounds are upper bounds in seconds or bytes. The last bucket
// has no bound.
type Histogram struct {
	Bounds []float64
	Counts []uint64
}

// Reading is the totals of an agent at one time. Totals may start again at 0.
type Reading struct {
	Agent
	Up       Up
	Bytes    uint64
	Requests uint64 // completed transfers
	Busy     time.Duration
	Post     time.Duration
	Errors   map[string]uint64 // by type
	Sizes    Histogram         // of the transfers; may be empty
	Times    Histogram

	Fill        float64 // of the ring, from 0 to 1
	Saturations uint64  // number of times that the ring was full
	Dropped     uint64  // events
	Torn        uint64  // transfers with missing events
	Foreign     uint64  // reads by another consumer
}

// Sample is the state of all agents at one time.
type Sample struct {
	At     time.Time
	Agents []Reading
}

// failed returns the number of failed operations that weren't canceled.
func (r *Reading) failed() (n uint64) {
	for kind, count := range r.Errors {
		if kind != Canceled {
			n += count
		}
	}
	return n
}
