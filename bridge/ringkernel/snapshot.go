// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"encoding/json"
	"fmt"
	"math"
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
	k := r.Kernel(id)
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
	for _, k := range r.registered() {
		t := k.telemetry(s.Time)
		s.Kernels = append(s.Kernels, t)
		s.TotalMessages += t.MessagesProcessed
		s.TotalErrors += t.Errors
		s.TotalDropped += t.MessagesDropped
		s.AggregateThroughput += t.Throughput()
	}
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

// MarshalJSON returns a JSON object in the format of [Telemetry.MarshalJSON]. Its
// field per_kernel is an object with the kernels by ID.
func (s Summary) MarshalJSON() ([]byte, error) {
	kernels := make(map[string]Telemetry, len(s.Kernels))
	for _, t := range s.Kernels {
		kernels[t.KernelID] = t
	}
	return json.Marshal(struct {
		Time                *time.Time           `json:"time"`
		Uptime              float64              `json:"uptime"`
		KernelCount         int                  `json:"kernel_count"`
		TotalMessages       int64                `json:"total_messages"`
		TotalErrors         int64                `json:"total_errors"`
		TotalDropped        int64                `json:"total_dropped"`
		AggregateThroughput float64              `json:"aggregate_throughput"`
		GPUUtilization      *float64             `json:"gpu_utilization"`
		PerKernel           map[string]Telemetry `json:"per_kernel"`
	}{
		known(s.Time), s.Uptime.Seconds(), s.KernelCount, s.TotalMessages, s.TotalErrors, s.TotalDropped,
		s.AggregateThroughput, s.GPUUtilization, kernels,
	})
}

// Reset restarts the snapshots and the uptime of the kernels with the given IDs at
// 0. Without IDs, it resets all kernels. The kernels stay registered and keep their
// states and queues. Unknown IDs are ignored.
//
// Reset doesn't affect counters and histograms, because they never decrease. It does
// affect the gauge ringkernel.uptime.
func (r *Runtime) Reset(ids ...string) {
	if r == nil {
		return
	}
	now := time.Now()
	if len(ids) == 0 {
		for _, k := range r.registered() {
			k.reset(now)
		}
		return
	}
	for _, id := range ids {
		if k := r.Kernel(id); k != nil {
			k.reset(now)
		}
	}
}

// baseline is what a reset saves: its time and the counters, which never decrease.
type baseline struct {
	start  time.Time
	totals totals
}

// totals are a kernel's counts since it was created.
type totals struct {
	received, sent, processed, errors int64
	dropped                           [queues]int64
	latency                           int64 // ns
}

func (k *Kernel) totals() totals {
	t := totals{
		received: k.received.count(), sent: k.sent.Load(), processed: k.processed.Load(),
		latency: k.latency.total.Load(),
	}
	for q := range k.dropped {
		t.dropped[q] = k.dropped[q].Load()
	}
	t.errors, _ = k.errors.load()
	return t
}

// reset restarts the snapshots at 0.
func (k *Kernel) reset(now time.Time) {
	k.latency.restart()
	k.errors.forgetLast()
	k.lastMessage.forget()
	k.received.expire()
	k.baseline.Store(&baseline{start: now, totals: k.totals()})
}

// telemetry returns the snapshot since the last reset.
func (k *Kernel) telemetry(now time.Time) Telemetry {
	base := k.baseline.Load() // before the totals, so that these are at least the baseline's
	t, before := k.totals(), &base.totals
	s := Telemetry{
		KernelID:          k.id,
		State:             State(k.state.Load()),
		MessagesReceived:  t.received - before.received,
		MessagesSent:      t.sent - before.sent,
		MessagesProcessed: t.processed - before.processed,
		Errors:            t.errors - before.errors,
		StartTime:         base.start,
		Time:              now,
		InputDropped:      t.dropped[InputQueue] - before.dropped[InputQueue],
		OutputDropped:     t.dropped[OutputQueue] - before.dropped[OutputQueue],
		TotalLatency:      time.Duration(t.latency - before.latency),
	}
	if last := k.lastMessage.load(); last.known {
		s.LastMessageTime = time.Unix(0, last.value)
	}
	if ended := k.ended.Load(); ended != nil {
		s.EndTime = *ended
	}
	s.MessagesDropped = s.InputDropped + s.OutputDropped
	queues := k.queues.Load()
	s.InputSize, s.InputCapacity = queues[InputQueue].load()
	s.OutputSize, s.OutputCapacity = queues[OutputQueue].load()
	_, s.LastError = k.errors.load()
	if shortest := k.latency.shortest.Load(); s.MessagesProcessed > 0 && shortest != math.MaxInt64 {
		s.MinLatency, s.MaxLatency = time.Duration(shortest), time.Duration(k.latency.longest.Load())
	}
	return s
}

// uptime returns the uptime since the last reset.
func (k *Kernel) uptime(now time.Time) time.Duration {
	t := Telemetry{StartTime: k.baseline.Load().start, Time: now}
	if ended := k.ended.Load(); ended != nil {
		t.EndTime = *ended
	}
	return t.Uptime()
}
