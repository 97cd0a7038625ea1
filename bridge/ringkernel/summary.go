// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"encoding/json"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/internal/expo"
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
	LastCollected  time.Time   // when a reader last collected the Runtime; zero before
	Kernels        []Telemetry // sorted by ID
}

// Telemetry returns a snapshot of the kernel with an ID. It returns ok = false if no
// such kernel is registered.
func (r *Runtime) Telemetry(id string) (t Telemetry, ok bool) {
	k := r.Kernel(id)
	if k == nil {
		return Telemetry{}, false
	}
	return k.telemetry(r.clock(), new(expo.Sum)), true
}

// Summary returns a snapshot of all kernels and their totals.
func (r *Runtime) Summary() Summary {
	if r == nil {
		return Summary{}
	}
	s := Summary{Time: r.clock(), LastCollected: r.lastProduced.load()}
	s.Uptime = max(s.Time.Sub(r.start), 0)
	latencies := new(expo.Sum)
	for _, k := range r.registered() {
		t := k.telemetry(s.Time, latencies)
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
		LastCollected       *time.Time           `json:"last_collected"`
		PerKernel           map[string]Telemetry `json:"per_kernel"`
	}{
		known(s.Time), s.Uptime.Seconds(), s.KernelCount, s.TotalMessages, s.TotalErrors, s.TotalDropped,
		s.AggregateThroughput, s.GPUUtilization, known(s.LastCollected), kernels,
	})
}

// Reset restarts the snapshots and the uptime of the kernels with the given IDs at
// 0. Without IDs, it resets all kernels. The kernels stay registered and keep their
// states and queues. Unknown IDs are ignored.
//
// Reset doesn't affect counters and histograms, because they never decrease. It does
// affect the gauges ringkernel.uptime, ringkernel.throughput and
// ringkernel.error_rate, whose values are those of the snapshots.
func (r *Runtime) Reset(ids ...string) {
	if r == nil {
		return
	}
	now := r.clock()
	if len(ids) == 0 {
		for _, k := range r.registered() {
			k.startEra(now)
		}
		return
	}
	for _, id := range ids {
		if k := r.Kernel(id); k != nil {
			k.startEra(now)
		}
	}
}
