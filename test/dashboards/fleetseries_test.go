// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dashboards

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/diagnose/fleets"
)

// key identifies a series.
type key struct{ name, labels string }

// newSeries returns the values of each series of a fleet, one per sample. The fleet is a cluster.
func newSeries(f *fleets.Fleet, kind string) map[key][]string {
	list := make(map[key][]string)
	directions := []string{`, nixl_transfer_direction="transmit"`, `, nixl_transfer_direction="receive"`}
	all := f.Readings()
	used := newBuckets(all)
	for i, readings := range all {
		for n := range readings {
			r := &readings[n]
			labels := labelsOf(f.Name, r)
			add := func(name, more string, v any) {
				k := key{name, labels + more}
				values := list[k]
				for len(values) < i {
					values = append(values, "_")
				}
				list[k] = append(values, fmt.Sprint(v))
			}
			addCounters(r, add)
			sum := r.Both()
			for n, d := range r.Moved {
				add("nixl_transfer_io_bytes_total", directions[n], d.Bytes)
				add("nixl_transfer_requests_total", directions[n], d.Transfers)
				if kind == exponential {
					add("nixl_transfer_throughput_bytes_per_second", directions[n], native(r.Speeds[n], float64(d.Transfers)))
				} else {
					used[n].add("nixl_transfer_throughput_bytes_per_second", directions[n], r.Speeds[n], add)
				}
			}
			if kind == exponential {
				add("nixl_transfer_duration_seconds", "", native(r.Times, sum.Seconds))
				add("nixl_transfer_size_bytes", "", native(r.Sizes, float64(sum.Bytes)))
				add("nixl_transfer_post_duration_seconds", "", native(diagnose.Histogram{Bounds: []float64{1}, Counts: []uint64{sum.Transfers, 0}}, r.Post))
				continue
			}
			used[2].add("nixl_transfer_duration_seconds", "", r.Times, add)
			used[3].add("nixl_transfer_size_bytes", "", r.Sizes, add)
			add("nixl_transfer_duration_seconds_sum", "", sum.Seconds)
			add("nixl_transfer_duration_seconds_count", "", sum.Transfers)
			add("nixl_transfer_size_bytes_sum", "", sum.Bytes)
			add("nixl_transfer_size_bytes_count", "", sum.Transfers)
			add("nixl_transfer_post_duration_seconds_sum", "", r.Post)
			add("nixl_transfer_post_duration_seconds_count", "", sum.Transfers)
		}
	}
	return list
}

func labelsOf(cluster string, r *fleets.Reading) string {
	a, labels := r.Identity, fmt.Sprintf("k8s_cluster_name=%q", cluster)
	for _, l := range []struct{ name, value string }{
		{"k8s_namespace_name", a.Namespace}, {"service_name", a.Service}, {"k8s_pod_name", a.Pod}, {"host_name", a.Host}, {"nixl_agent_name", a.Name},
	} {
		if l.value != "" {
			labels += fmt.Sprintf(", %s=%q", l.name, l.value)
		}
	}
	if r.Stream > 0 {
		labels += fmt.Sprintf(`, instance="%d"`, r.Stream)
	}
	return labels
}

func addCounters(r *fleets.Reading, add func(name, more string, v any)) {
	add("nixl_agent_up", "", int(r.Up)-int(diagnose.No))
	add("nixl_telemetry_ring_capacity", "", 4096)
	add("nixl_telemetry_ring_utilization_ratio", "", r.Fill())
	add("nixl_telemetry_ring_saturations_total", "", r.Ring.Saturations)
	add("nixl_telemetry_events_dropped_total", "", r.Dropped)
	add("nixl_telemetry_ring_torn_groups_total", "", r.Ring.Torn)
	add("nixl_telemetry_ring_foreign_reads_total", "", r.Ring.Foreign)
	add("nixl_telemetry_ring_restarts_total", "", r.Ring.Restarts)
	add("nixl_memory_usage_bytes", "", *r.Memory)
	// Every status is reported from 0 on.
	for _, kind := range []string{"backend", diagnose.NotFound, diagnose.Canceled} {
		add("nixl_errors_total", fmt.Sprintf(", error_type=%q", kind), r.Errors[kind])
	}
}

// buckets are those that a fleet uses, the one below them, and the last one. Quantiles are the same
// without the others.
type buckets struct{ first, last int }

// newBuckets returns the buckets of throughputs of writes and reads, durations, and sizes.
func newBuckets(all [][]fleets.Reading) (used [4]buckets) {
	for i := range used {
		used[i].first = math.MaxInt
	}
	for _, readings := range all {
		for _, r := range readings {
			for i, h := range []diagnose.Histogram{r.Speeds[0], r.Speeds[1], r.Times, r.Sizes} {
				for n, count := range h.Counts {
					if count > 0 {
						used[i].first, used[i].last = min(used[i].first, n-1), max(used[i].last, n)
					}
				}
			}
		}
	}
	return used
}

func (b buckets) add(name, labels string, h diagnose.Histogram, add func(name, more string, v any)) {
	sum := uint64(0)
	for i, n := range h.Counts {
		sum += n
		if i == len(h.Bounds) {
			add(name+"_bucket", labels+`, le="Inf"`, sum)
		} else if b.first <= i && i <= b.last {
			add(name+"_bucket", labels+fmt.Sprintf(", le=%q", fmt.Sprint(h.Bounds[i])), sum)
		}
	}
}

// native returns a native histogram of schema 2, which has four buckets per power of two. The
// observations of an explicit bucket are in one of them.
func native(h diagnose.Histogram, sum float64) string {
	counts := make(map[int]uint64)
	total := uint64(0)
	for i, n := range h.Counts {
		if n == 0 {
			continue
		}
		middle := h.Bounds[min(i, len(h.Bounds)-1)] * 0.7
		counts[int(math.Ceil(4*math.Log2(middle)))] += n
		total += n
	}
	if total == 0 {
		return "{{schema:2}}"
	}
	first, last := slices.Min(slices.Collect(maps.Keys(counts))), slices.Max(slices.Collect(maps.Keys(counts)))
	var buckets []string
	for i := first; i <= last; i++ {
		buckets = append(buckets, fmt.Sprint(counts[i]))
	}
	return fmt.Sprintf("{{schema:2 sum:%g count:%d offset:%d buckets:[%s]}}", sum, total, first, strings.Join(buckets, " "))
}
