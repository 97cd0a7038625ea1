// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"encoding/json"
	"time"
)

// Telemetry is a snapshot of a kernel. It covers the time since the kernel was
// registered or last reset.
type Telemetry struct {
	KernelID string
	State    State

	MessagesReceived  int64
	MessagesSent      int64
	MessagesProcessed int64
	MessagesDropped   int64 // in both queues
	Errors            int64

	StartTime       time.Time // when the kernel was registered or last reset
	EndTime         time.Time // when it terminated; zero before
	LastMessageTime time.Time // when it last received a message; zero before the first
	Time            time.Time // when the snapshot was taken

	// The number of messages in each queue, what it can hold, and the messages that were
	// dropped because it was full. Unknown values are 0.
	InputSize, InputCapacity, InputDropped    int64
	OutputSize, OutputCapacity, OutputDropped int64

	// The latencies of the processed messages, 0 if there are none.
	TotalLatency time.Duration
	MinLatency   time.Duration
	MaxLatency   time.Duration

	LastError error // nil if there was none
}

// MarshalJSON returns the fields, with the text of LastError, and what is derived from them.
func (t Telemetry) MarshalJSON() ([]byte, error) {
	type fields Telemetry
	out := struct {
		fields
		LastError          string `json:",omitempty"`
		Uptime, Throughput float64
		ErrorRate          float64
	}{fields: fields(t), Uptime: t.Uptime().Seconds(), Throughput: t.Throughput(), ErrorRate: t.ErrorRate()}
	if t.LastError != nil {
		out.LastError = t.LastError.Error()
	}
	return json.Marshal(out)
}

// Uptime returns the time from StartTime to the snapshot, or to EndTime if the
// kernel has terminated. It is 0 if the kernel was reset after it terminated.
func (t Telemetry) Uptime() time.Duration {
	end := t.Time
	if !t.EndTime.IsZero() {
		end = t.EndTime
	}
	return max(end.Sub(t.StartTime), 0)
}

// Throughput returns the number of processed messages per second of uptime, or 0 if
// the uptime is 0.
func (t Telemetry) Throughput() float64 {
	up := t.Uptime()
	if up == 0 {
		return 0
	}
	return float64(t.MessagesProcessed) / up.Seconds()
}

// ErrorRate returns the number of errors per processed message, or 0 if no message
// was processed. It exceeds 1 if there are more errors than processed messages.
func (t Telemetry) ErrorRate() float64 {
	if t.MessagesProcessed == 0 {
		return 0
	}
	return float64(t.Errors) / float64(t.MessagesProcessed)
}

// AverageLatency returns the mean latency of the processed messages, or 0 if no
// message was processed.
func (t Telemetry) AverageLatency() time.Duration {
	if t.MessagesProcessed == 0 {
		return 0
	}
	return t.TotalLatency / time.Duration(t.MessagesProcessed)
}
