package ringkernel

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Summary is what all kernels of a Runtime did, as a snapshot. A disabled
// Runtime's is the zero Summary.
type Summary struct {
	Time                time.Time // when the snapshot was taken
	Uptime              time.Duration
	KernelCount         int
	TotalMessages       int64 // processed
	TotalErrors         int64
	TotalDropped        int64   // messages
	AggregateThroughput float64 // messages/s: the sum of the kernels'
	// GPUUtilization is 0 to 1, or nil without a GPU: see [WithGPUUtilization].
	GPUUtilization *float64
	Kernels        []Telemetry // by id
}

// Telemetry is the snapshot of a kernel; ok is false for an id that isn't
// registered.
func (r *Runtime) Telemetry(id string) (t Telemetry, ok bool) {
	k := r.kernel(id)
	if k == nil {
		return Telemetry{}, false
	}
	return k.telemetry(r.now()), true
}

// All is the snapshots of all kernels by id. It is empty when the Runtime is
// disabled.
func (r *Runtime) All() map[string]Telemetry {
	all := make(map[string]Telemetry)
	for _, t := range r.snapshots() {
		all[t.KernelID] = t
	}
	return all
}

// Summary is computed when it is called, from a snapshot of each kernel.
func (r *Runtime) Summary() Summary {
	if !r.Enabled() {
		return Summary{}
	}
	s := Summary{Time: r.now(), Kernels: r.snapshots()}
	s.Uptime = max(s.Time.Sub(r.start), 0)
	s.KernelCount = len(s.Kernels)
	for _, t := range s.Kernels {
		s.TotalMessages += t.MessagesProcessed
		s.TotalErrors += t.Errors
		s.TotalDropped += t.MessagesDropped
		s.AggregateThroughput += t.Throughput()
	}
	if r.gpuUtilization != nil {
		if ratio, ok := r.gpuUtilization(); ok {
			s.GPUUtilization = &ratio
		}
	}
	return s
}

// snapshots are those of all kernels, by id.
func (r *Runtime) snapshots() []Telemetry {
	if !r.Enabled() {
		return nil
	}
	now := r.now()
	live := r.registry.Load().live
	all := make([]Telemetry, 0, len(live))
	for _, k := range live {
		all = append(all, k.telemetry(now))
	}
	slices.SortFunc(all, func(a, b Telemetry) int { return cmp.Compare(a.KernelID, b.KernelID) })
	return all
}

// Reset has the snapshots of the kernels with the given ids start again from
// 0, and their uptime too; without ids, those of all kernels. Kernels stay
// registered, in their state and with their queues. Ids that aren't registered
// are left at that.
//
// The counters that a MeterProvider reports are not reset: they never go back.
func (r *Runtime) Reset(ids ...string) {
	if !r.Enabled() {
		return
	}
	live := r.registry.Load().live
	now := r.now()
	if len(ids) == 0 {
		for _, k := range live {
			k.startEra(now)
		}
		return
	}
	for _, id := range ids {
		if k := live[id]; k != nil {
			k.startEra(now)
		}
	}
}

// String is the summary in lines, with one for each kernel.
func (s Summary) String() string {
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
		fmt.Fprintf(&b, "  %s: %v, %d processed, %.1f msg/s, latency %v avg, %v max, %d errors\n", t.KernelID, t.State,
			t.MessagesProcessed, t.Throughput(), t.AverageLatency(), t.MaxLatency, t.Errors)
	}
	return b.String()
}

// PrintTo is a function for [Runtime.Monitor] that writes each summary to w,
// and an empty line before it.
func PrintTo(w io.Writer) func(Summary) error {
	return func(s Summary) error {
		if _, err := fmt.Fprintf(w, "\n%v", s); err != nil {
			return fmt.Errorf("print summary: %w", err)
		}
		return nil
	}
}
