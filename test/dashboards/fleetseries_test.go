// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dashboards

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/diagnose/fleets"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// key identifies a series.
type key struct{ name, labels string }

// newSeries returns the values of each series of a fleet, one per sample. The fleet is a cluster.
func newSeries(f *fleets.Fleet, kind string) map[key][]string {
	list := make(map[key][]string)
	directions := []string{`, nixl_transfer_direction="transmit"`, `, nixl_transfer_direction="receive"`}
	all := f.Readings()
	used := newBuckets(all)
	// Every status is reported from 0 on. Of those that no agent of the fleet has, a few are enough.
	kinds := []string{"backend", diagnose.NotFound, diagnose.Canceled}
	for _, readings := range all {
		for n := range readings {
			for kind := range readings[n].Errors {
				if !slices.Contains(kinds, kind) {
					kinds = append(kinds, kind)
				}
			}
		}
	}
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
			addCounters(r, kinds, add)
			sum := r.Both()
			for n, d := range r.Moved {
				if d.Transfers == 0 { // series are absent until the first transfer
					continue
				}
				add("nixl_transfer_io_bytes_total", directions[n], d.Bytes)
				add("nixl_transfer_requests_total", directions[n], d.Transfers)
				if kind == exponential {
					add("nixl_transfer_throughput_bytes_per_second", directions[n], native(r.Speeds[n], float64(d.Transfers)))
				} else {
					used[n].add("nixl_transfer_throughput_bytes_per_second", directions[n], r.Speeds[n], add)
				}
			}
			if sum.Transfers == 0 {
				continue
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

func addCounters(r *fleets.Reading, kinds []string, add func(name, more string, v any)) {
	add("nixl_agent_up", "", int(r.Up)-int(diagnose.No))
	add("nixl_telemetry_ring_capacity", "", 4096)
	add("nixl_telemetry_ring_utilization_ratio", "", r.Fill())
	add("nixl_telemetry_ring_saturations_total", "", r.Ring.Saturations)
	add("nixl_telemetry_events_dropped_total", "", r.Dropped)
	add("nixl_telemetry_ring_torn_groups_total", "", r.Ring.Torn)
	add("nixl_telemetry_ring_foreign_reads_total", "", r.Ring.Foreign)
	add("nixl_telemetry_ring_restarts_total", "", r.Ring.Restarts)
	if *r.Memory > 0 { // absent until the first registration
		add("nixl_memory_usage_bytes", "", *r.Memory)
	}
	for _, kind := range kinds {
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

// namesOf returns the names of the series of an agent without Collector, with the direction or the type of errors.
func namesOf(list []map[string]string) []string {
	names := make(map[string]bool)
	for _, labels := range list {
		name, direction := labels["__name__"], labels["nixl_transfer_direction"]
		if strings.HasPrefix(name, "nixl_transfer_size_bytes") { // the rules add the directions
			direction = ""
		}
		names[name+" "+direction+labels["error_type"]] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// The rules are only as good as the series that they are tested with.
func TestFleetsHaveTheSeriesThatTheCollectorExports(t *testing.T) {
	b, dir := startVictoriaMetrics(t), t.TempDir()
	idle, err := ringbuf.Create(filepath.Join(dir, "idle"), ringbuf.V4, 1024)
	must.OK(t, err)
	defer idle.Close()
	writer, err := ringbuf.Create(filepath.Join(dir, "writer"), ringbuf.V4, 1024)
	must.OK(t, err)
	defer writer.Close()
	for _, e := range []struct {
		kind  ringbuf.Type
		value uint64
	}{{ringbuf.TypeXferPostTime, 10}, {ringbuf.TypeXferTime, 100}, {ringbuf.TypeTxBytes, 4096}, {ringbuf.TypeTxRequests, 1}} {
		must.OK(t, writer.Push(ringbuf.NewEvent(e.kind, e.value)))
	}
	startCollector(t, dir, host, fmt.Sprintf("127.0.0.1:%d", proc.FreePort(t)), explicit, []backend{b})
	f := fleets.Fleet{Length: fleets.Every, Members: []fleets.Member{
		{Identity: diagnose.Identity{Name: "idle"}, Do: func(time.Duration) fleets.State { return fleets.State{} }},
		{Identity: diagnose.Identity{Name: "writer"}, Do: func(time.Duration) fleets.State {
			return fleets.State{Loads: []fleets.Load{{Size: 4096, Time: time.Millisecond, Rate: 1}}}
		}},
	}}
	generated := map[string][]map[string]string{}
	for k := range newSeries(&f, explicit) {
		labels := map[string]string{"__name__": k.name}
		for pair := range strings.SplitSeq(k.labels, ", ") {
			name, value, _ := strings.Cut(pair, "=")
			labels[name] = strings.Trim(value, `"`)
		}
		generated[labels["nixl_agent_name"]] = append(generated[labels["nixl_agent_name"]], labels)
	}
	known := make(map[string]bool) // what the rules need of agents
	for _, name := range namesOf(slices.Concat(generated["idle"], generated["writer"])) {
		known[name] = true
	}
	for agent, list := range generated {
		must.Eventually(t, func() string {
			exported, err := b.query(t, fmt.Sprintf(`{__name__=~"nixl_.+",nixl_agent_name=%q}`, agent))
			if err != nil {
				return err.Error()
			}
			var labels []map[string]string
			for _, s := range exported {
				labels = append(labels, s.labels)
			}
			return cmp.Diff(namesOf(list), slices.DeleteFunc(namesOf(labels), func(name string) bool { return !known[name] }))
		})
	}
}
