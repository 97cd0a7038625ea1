// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Summary is a snapshot of all kernels of a Runtime. A nil Runtime returns the zero
// Summary.
type Summary struct {
	Time                time.Time // when the snapshot was taken
	Uptime              time.Duration
	KernelCount         int
	TotalMessages       int64 // processed
	TotalErrors         int64
	TotalDropped        int64   // messages
	AggregateThroughput float64 // messages/s, summed over all kernels
	// GPUUtilization is from 0 to 1, or nil without a GPU; see
	// [WithGPUUtilization].
	GPUUtilization *float64
	Kernels        []Telemetry // sorted by ID
}

// Telemetry returns a snapshot of the kernel with an ID. It returns ok = false if no
// such kernel is registered.
func (r *Runtime) Telemetry(id string) (t Telemetry, ok bool) {
	k := r.kernel(id)
	if k == nil {
		return Telemetry{}, false
	}
	return k.telemetry(time.Now()), true
}

// Summary returns a snapshot of all kernels and their totals.
func (r *Runtime) Summary() Summary {
	if r == nil {
		return Summary{}
	}
	s := Summary{Time: time.Now()}
	s.Uptime = s.Time.Sub(r.start)
	for _, k := range r.all() {
		t := k.telemetry(s.Time)
		s.Kernels = append(s.Kernels, t)
		s.TotalMessages += t.MessagesProcessed
		s.TotalErrors += t.Errors
		s.TotalDropped += t.MessagesDropped
		s.AggregateThroughput += t.Throughput()
	}
	slices.SortFunc(s.Kernels, func(a, b Telemetry) int { return cmp.Compare(a.KernelID, b.KernelID) })
	s.KernelCount = len(s.Kernels)
	if r.gpuUtilization != nil {
		if ratio, ok := r.gpuUtilization(); ok {
			s.GPUUtilization = &ratio
		}
	}
	return s
}

// String returns the summary as text, with one line per kernel.
func (s Summary) String() string {
	if s.Time.IsZero() {
		return "=== Telemetry is disabled ===\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "=== Telemetry @ %d ===\n", s.Time.Unix())
	fmt.Fprintf(&b, "Kernels: %d\n", s.KernelCount)
	fmt.Fprintf(&b, "Messages: %d\n", s.TotalMessages)
	fmt.Fprintf(&b, "Throughput: %.1f msg/s\n", s.AggregateThroughput)
	fmt.Fprintf(&b, "Errors: %d\n", s.TotalErrors)
	fmt.Fprintf(&b, "Dropped: %d\n", s.TotalDropped)
	if s.GPUUtilization != nil {
		fmt.Fprintf(&b, "GPU: %.1f%%\n", 100**s.GPUUtilization)
	}
	for _, t := range s.Kernels {
		fmt.Fprintf(&b, "  %s: %v, %d processed, %.1f msg/s, latency %v avg, %v min, %v max, %d errors\n",
			t.KernelID, t.State, t.MessagesProcessed, t.Throughput(),
			t.AverageLatency(), t.MinLatency, t.MaxLatency, t.Errors)
	}
	return b.String()
}

// Reset restarts the snapshots and the uptime of the kernels with the given IDs at
// 0. Without IDs, it resets all kernels. The kernels stay registered and keep their
// states and queues. Unknown IDs are ignored.
//
// Reset doesn't affect counters and histograms, because they never decrease. It does
// affect the gauges ringkernel.uptime, .throughput and .error_rate.
func (r *Runtime) Reset(ids ...string) {
	if r == nil {
		return
	}
	now := time.Now()
	for _, k := range r.all() {
		if len(ids) == 0 || slices.Contains(ids, k.id) {
			k.mu.Lock()
			k.reset(now)
			k.mu.Unlock()
		}
	}
}

// reset restarts the snapshots at 0. The caller holds mu.
func (k *Kernel) reset(now time.Time) {
	k.shortest.Store(math.MaxInt64)
	k.longest.Store(0)
	k.lastError = nil
	k.lastMessage.Store(0)
	k.stale.Store(true)
	k.baseline = k.totals(now)
}

// counts returns what was counted since the kernel was registered.
func (k *Kernel) counts() Telemetry {
	return Telemetry{
		MessagesReceived: k.received.Load(), MessagesSent: k.sent.Load(), MessagesProcessed: k.processed.Load(),
		InputDropped: k.dropped[InputQueue].Load(), OutputDropped: k.dropped[OutputQueue].Load(),
		TotalLatency: time.Duration(k.latency.Load()),
	}
}

// add adds counts.
func (t *Telemetry) add(n *Telemetry) {
	t.MessagesReceived += n.MessagesReceived
	t.MessagesSent += n.MessagesSent
	t.MessagesProcessed += n.MessagesProcessed
	t.InputDropped += n.InputDropped
	t.OutputDropped += n.OutputDropped
}

// totals returns a snapshot with the counts since the kernel was registered. The caller
// holds mu.
func (k *Kernel) totals(now time.Time) Telemetry {
	t := k.counts()
	t.KernelID, t.State, t.Errors, t.LastError = k.id, k.state, k.errors, k.lastError
	t.StartTime, t.EndTime, t.Time = k.baseline.Time, k.ended, now
	t.MinLatency, t.MaxLatency = time.Duration(k.shortest.Load()), time.Duration(k.longest.Load())
	if last := k.lastMessage.Load(); last != 0 {
		t.LastMessageTime = time.Unix(0, last)
	}
	return t
}

// telemetry returns the snapshot since the last reset, with the sizes of the queues.
func (k *Kernel) telemetry(now time.Time) Telemetry {
	t := k.sinceReset(now)
	t.InputSize, t.InputCapacity, _ = k.queues[InputQueue].read()
	t.OutputSize, t.OutputCapacity, _ = k.queues[OutputQueue].read()
	return t
}

func (k *Kernel) sinceReset(now time.Time) Telemetry {
	k.mu.Lock()
	before, t := k.baseline, k.totals(now)
	k.mu.Unlock()
	t.MessagesReceived -= before.MessagesReceived
	t.MessagesSent -= before.MessagesSent
	t.MessagesProcessed -= before.MessagesProcessed
	t.Errors -= before.Errors
	t.InputDropped -= before.InputDropped
	t.OutputDropped -= before.OutputDropped
	t.TotalLatency -= before.TotalLatency
	t.MessagesDropped = t.InputDropped + t.OutputDropped
	if t.MessagesProcessed == 0 || t.MinLatency == math.MaxInt64 { // a message is counted before its latency
		t.MinLatency, t.MaxLatency = 0, 0
	}
	return t
}
