// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// series collects the samples of agents, and makes frames of them.
type series struct {
	include []string
	job     string
	r       v1.Range
	steps   int
	agents  map[string]*sampled // by ID
	last    map[counter]float64 // the newest values
}

// counter identifies a series of a counter. Functions remove the name.
type counter struct {
	metric
	series model.Fingerprint
}

// sampled is an agent.
type sampled struct {
	diagnose.Identity
	attributes map[string]string
	sums       [totals]float64    // at the newest frame
	errors     map[string]float64 // likewise
	seconds    [2]float64         // likewise
	undivided  bool               // only their sum is known

	there  []bool            // by frame, as everything below
	values [totals][]float64 // values of gauges, or increases
	failed map[string][]float64
	counts map[what][]*diagnose.Histogram
}

func newSeries(include []string, job string) series {
	return series{include: include, job: job, agents: make(map[string]*sampled), last: make(map[counter]float64)}
}

// begin begins a range of time.
func (s *series) begin(r v1.Range) {
	s.r, s.steps = r, int(r.End.Sub(r.Start)/r.Step)+1
	for _, a := range s.agents {
		a.there, a.values, a.failed, a.counts = make([]bool, s.steps), [totals][]float64{}, make(map[string][]float64), make(map[what][]*diagnose.Histogram)
	}
}

// label returns the value of a label with dots or underscores.
func label(m model.Metric, name string) string {
	return units.Printable(string(cmp.Or(m[model.LabelName(strings.ReplaceAll(name, ".", "_"))], m[model.LabelName(name)])))
}

// identity returns who a series is about, without an ID.
func identity(m model.Metric) diagnose.Identity {
	return diagnose.Identity{
		Name: label(m, semconv.AgentName), Pod: label(m, podName), Host: label(m, semconv.HostName),
		Job: diagnose.Job{Cluster: label(m, clusterName), Namespace: label(m, podNamespace), Service: label(m, semconv.ServiceName)},
	}
}

// agent returns the agent of a series, or nil if it isn't selected.
func (s *series) agent(m model.Metric) *sampled {
	id := identity(m)
	if id.Name == "" || s.job != "" && id.Service != s.job || len(s.include) > 0 && !included(s.include, id.Name) {
		return nil
	}
	id.Service = cmp.Or(id.Service, label(m, "job"))
	id.ID = strings.Join([]string{id.Cluster, id.Namespace, id.Service, id.Pod, id.Host, id.Name}, "/")
	a := s.agents[id.ID]
	if a == nil {
		a = &sampled{Identity: id, attributes: make(map[string]string), errors: make(map[string]float64), there: make([]bool, s.steps), failed: make(map[string][]float64), counts: make(map[what][]*diagnose.Histogram)}
		for _, key := range []string{semconv.ServiceName, podNamespace, podName, semconv.HostName, instance} {
			if v := label(m, key); v != "" {
				a.attributes[key] = v
			}
		}
		s.agents[id.ID] = a
	}
	return a
}

// add adds the samples of a metric.
func (s *series) add(m metric, matrix model.Matrix) {
	if m.what >= times {
		s.addBuckets(m.what, matrix)
		return
	}
	for _, stream := range matrix {
		a := s.agent(stream.Metric)
		if a == nil {
			continue
		}
		w := m.what
		if slices.Contains([]what{bytesOf, transfersOf, speedsOf, speedCountOf}, w) {
			if d := label(stream.Metric, semconv.Direction); d == semconv.Receive {
				w++
			}
		}
		var values []float64
		if w == failed {
			kind := label(stream.Metric, semconv.ErrorType)
			if a.failed[kind] == nil {
				a.failed[kind] = make([]float64, s.steps)
			}
			values = a.failed[kind]
		} else {
			if a.values[w] == nil {
				a.values[w] = make([]float64, s.steps)
				for i := range a.values[w] {
					if w < gauges {
						a.values[w][i] = math.NaN()
					}
				}
			}
			values = a.values[w]
		}
		key := counter{m, stream.Metric.Fingerprint()}
		last, known := s.last[key]
		for _, p := range stream.Values {
			i, v := s.index(p.Timestamp), float64(p.Value)
			if math.IsNaN(v) {
				continue
			}
			if i >= 0 { // else it is what a counter was before
				a.there[i] = true
				switch {
				case w < gauges && !(values[i] > v): // two Collectors may report an agent for a while
					values[i] = v
				case w >= gauges && known:
					values[i] += increase(last, v)
				}
			}
			last, known = v, true
		}
		if known {
			s.last[key] = last
		}
	}
}

// addBuckets adds histograms in each of their forms: buckets with an upper bound, which include those below; with a range, as
// VictoriaMetrics has them; or all of a histogram in each sample.
func (s *series) addBuckets(w what, matrix model.Matrix) {
	type bucket struct {
		upper  float64
		stream *model.SampleStream
	}
	cumulative := make(map[model.Fingerprint][]bucket)
	for _, stream := range matrix {
		a := s.agent(stream.Metric)
		if a == nil {
			continue
		}
		for _, p := range stream.Histograms {
			for _, b := range p.Histogram.Buckets {
				a.count(w, s.index(p.Timestamp), float64(b.Upper), float64(b.Count))
			}
		}
		if _, upper, ok := strings.Cut(string(stream.Metric["vmrange"]), "..."); ok {
			bound, _ := strconv.ParseFloat(upper, 64)
			for _, p := range stream.Values {
				a.count(w, s.index(p.Timestamp), bound, float64(p.Value))
			}
		} else if le, err := strconv.ParseFloat(string(stream.Metric[model.BucketLabel]), 64); err == nil {
			others := stream.Metric.Clone()
			delete(others, model.BucketLabel)
			cumulative[others.Fingerprint()] = append(cumulative[others.Fingerprint()], bucket{le, stream})
		}
	}
	for _, list := range cumulative {
		slices.SortFunc(list, func(a, b bucket) int { return cmp.Compare(a.upper, b.upper) })
		a, below := s.agent(list[0].stream.Metric), make([]float64, s.steps)
		for _, b := range list {
			for _, p := range b.stream.Values {
				if i := s.index(p.Timestamp); i >= 0 {
					a.count(w, i, b.upper, float64(p.Value)-below[i])
					below[i] = float64(p.Value)
				}
			}
		}
	}
}

// index returns the frame of a time, or -1.
func (s *series) index(at model.Time) int {
	i := int(at.Time().Sub(s.r.Start) / s.r.Step)
	if i < 0 || i >= s.steps {
		return -1
	}
	return i
}

// count adds to the bucket of a frame with an upper bound.
func (a *sampled) count(w what, i int, upper, n float64) {
	const rounding = 1 - 1e-9
	if i < 0 || !(n > 0) {
		return
	}
	if a.counts[w] == nil {
		a.counts[w] = make([]*diagnose.Histogram, len(a.there))
	}
	h := a.counts[w][i]
	if h == nil {
		bounds := timeBounds
		if w == sizes {
			bounds = semconv.TransferSize.Bounds
		}
		h = &diagnose.Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
		a.counts[w][i] = h
	}
	h.Counts[sort.SearchFloat64s(h.Bounds, upper*rounding)] += uint64(math.Round(n))
}

// buckets returns the histogram of a frame. Frames before the first one have the same, because they show no increase.
func (a *sampled) buckets(w what, i int) diagnose.Histogram {
	for _, h := range a.counts[w][min(i, len(a.counts[w])):] {
		if h != nil {
			return *h
		}
	}
	return diagnose.Histogram{}
}

// increase returns how far a counter grew. A counter that is lower than before started again at 0.
func increase(from, to float64) float64 {
	if to < from {
		return to
	}
	return to - from
}

// frames returns a frame per step. Counters begin at 0 with the first sample.
func (s *series) frames() []*diagnose.Frame {
	frames := make([]*diagnose.Frame, s.steps)
	for i := range frames {
		frames[i] = &diagnose.Frame{Time: s.r.Start.Add(time.Duration(i) * s.r.Step), Agents: []diagnose.Agent{}}
	}
	for _, id := range slices.Sorted(maps.Keys(s.agents)) {
		a := s.agents[id]
		for i, f := range frames {
			a.advance(i)
			if a.there[i] {
				f.Agents = append(f.Agents, a.state(i))
			}
		}
	}
	return frames
}

// at returns a gauge, or the increase of a counter, at a frame.
func (a *sampled) at(w what, i int) float64 {
	if a.values[w] == nil {
		if w < gauges {
			return math.NaN()
		}
		return 0
	}
	return a.values[w][i]
}

// advance adds the increases of a frame. The times have no direction: their sum is divided as the bytes by the mean speeds are. If
// a direction has no speeds, only the sum is known.
func (a *sampled) advance(i int) {
	var bytes, shares [2]float64
	for d := range shares {
		bytes[d] = a.at(bytesOf+what(d), i)
		if n, speeds := a.at(speedCountOf+what(d), i), a.at(speedsOf+what(d), i); n > 0 && speeds > 0 {
			shares[d] = bytes[d] / speeds * n
		}
	}
	if shares[0] == 0 || shares[1] == 0 {
		shares, a.undivided = bytes, a.undivided || bytes[0] > 0 && bytes[1] > 0
	}
	for d := range shares {
		if sum := shares[0] + shares[1]; sum > 0 {
			a.seconds[d] += a.at(took, i) * shares[d] / sum
		}
	}
	for w := gauges; w < totals; w++ {
		a.sums[w] += a.at(w, i)
	}
	for kind, values := range a.failed {
		a.errors[kind] += values[i]
	}
}

// state returns the agent at the frame that it has advanced to.
func (a *sampled) state(i int) diagnose.Agent {
	sum := func(w what) uint64 { return uint64(math.Round(a.sums[w])) }
	out := diagnose.Agent{
		Identity: a.Identity, Attributes: a.attributes, Times: a.buckets(times, i), Sizes: a.buckets(sizes, i), Post: a.sums[post], Errors: make(map[string]uint64), Dropped: sum(dropped),
		Undivided: a.undivided,
	}
	for d := range out.Moved {
		out.Moved[d] = diagnose.Moved{Bytes: sum(bytesOf + what(d)), Transfers: sum(transfersOf + what(d)), Seconds: a.seconds[d]}
	}
	out.Events = out.Both().Transfers
	for kind, n := range a.errors {
		if n > 0 {
			out.Errors[kind] = uint64(math.Round(n))
			out.Events += out.Errors[kind]
		}
	}
	switch v := a.at(up, i); {
	case v > 0:
		out.Up = diagnose.Yes
	case v == 0:
		out.Up = diagnose.No
	}
	if v := a.at(memory, i); !math.IsNaN(v) {
		bytes := int64(v)
		out.Memory = &bytes
	}
	if n := a.at(capacity, i); n > 1 {
		out.Ring = &diagnose.Ring{
			Capacity: int(n), Saturations: sum(saturations), Torn: sum(torn), Foreign: sum(foreign), Restarts: sum(restarts),
			ConsumerUnknown: true, // a Collector, which reported this
		}
		if v := a.at(fill, i); !math.IsNaN(v) {
			out.Ring.Peak = int(math.Round(v * (n - 1)))
		}
	} else {
		out.Store = true
	}
	return out
}
