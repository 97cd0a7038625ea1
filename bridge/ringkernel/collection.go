// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/nixl-otel/nixl-otel/bridge/internal/expo"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// collection holds the data points of one collection.
type collection struct {
	now         time.Time
	seen        uint64 // number of exemplars collected before
	exponential bool
	derived     bool

	// With delta temporality, before is the state at the previous collection, nil
	// for the first one, and after is the state at this collection.
	before, after *reported

	received, sent, processed, dropped, errors []metricdata.DataPoint[int64]
	queueSize, queueCapacity, status           []metricdata.DataPoint[int64]
	uptime, lastMessage, throughput, errorRate []metricdata.DataPoint[float64]
	durations                                  []metricdata.HistogramDataPoint[float64]
	exponentials                               []metricdata.ExponentialHistogramDataPoint[float64]

	latencies expo.Sum // of the current kernel
}

// reserve allocates the points that every kernel has.
func (c *collection) reserve(live, gone int) {
	n := live + gone
	c.received = make([]metricdata.DataPoint[int64], 0, n)
	c.sent = make([]metricdata.DataPoint[int64], 0, n)
	c.processed = make([]metricdata.DataPoint[int64], 0, n)
	c.dropped = make([]metricdata.DataPoint[int64], 0, n*queues)
	c.status = make([]metricdata.DataPoint[int64], 0, live*states)
	c.uptime = make([]metricdata.DataPoint[float64], 0, live)
}

// addCounters adds the totals since the start of the kernel's series. It ignores
// resets, because a counter must not decrease.
func (c *collection) addCounters(k *Kernel) {
	t := k.read(&c.latencies)
	began := k.created
	if c.after != nil {
		t, began = c.since(k, &t)
	}
	e := k.exemplars.Load()
	if e == nil {
		e = &none
	}
	point := func(set attribute.Set, n int64, s *slot) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{
			Attributes: set, StartTime: began, Time: c.now, Value: n, Exemplars: take[int64](s, c.seen),
		}
	}
	c.received = append(c.received, point(k.points.kernel, t.received, &e.received))
	c.sent = append(c.sent, point(k.points.kernel, t.sent, &e.sent))
	c.processed = append(c.processed, point(k.points.kernel, t.processed, &none.received))
	for q, n := range t.dropped {
		c.dropped = append(c.dropped, point(k.points.queues[q], n, &e.dropped[q]))
	}
	k.errors.each(func(e *errorCount) {
		c.errors = append(c.errors, point(e.set, c.errorsSince(e), &e.exemplar))
	})
	if t.processed > 0 {
		c.addLatencies(k, e, began)
	}
}

// none holds the exemplars of a kernel that never recorded within a sampled span.
var none exemplars

func (c *collection) addLatencies(k *Kernel, e *exemplars, began time.Time) {
	var found []metricdata.Exemplar[float64]
	for i := range e.latencies {
		found = append(found, take[float64](&e.latencies[i], c.seen)...)
	}
	if c.exponential {
		p := c.latencies.Point()
		c.exponentials = append(c.exponentials, metricdata.ExponentialHistogramDataPoint[float64]{
			Attributes: k.points.kernel, StartTime: began, Time: c.now,
			Count: p.Count, Sum: p.Sum, Min: c.extreme(p.Min), Max: c.extreme(p.Max),
			Scale: p.Scale, ZeroCount: p.Zeros,
			PositiveBucket: metricdata.ExponentialBucket{Offset: p.Offset, Counts: p.Counts},
			Exemplars:      found,
		})
		return
	}
	p := c.latencies.Total()
	c.durations = append(c.durations, metricdata.HistogramDataPoint[float64]{
		Attributes: k.points.kernel, StartTime: began, Time: c.now,
		Count: p.Count, Sum: p.Sum, Min: c.extreme(p.Min), Max: c.extreme(p.Max),
		Bounds: semconv.KernelDurationBounds(), BucketCounts: c.latencies.Explicit(latencyBounds),
		Exemplars: found,
	})
}

// addGauges adds the metrics that only registered kernels have.
func (c *collection) addGauges(k *Kernel) {
	state := State(k.state.Load())
	for s, set := range k.points.states {
		var in int64
		if state == State(s) {
			in = 1
		}
		c.status = append(c.status, c.level(k, set, in))
	}
	for q := range k.queues {
		size, capacity := k.queues[q].read()
		if size.known {
			c.queueSize = append(c.queueSize, c.level(k, k.points.queues[q], size.messages))
		}
		if capacity.known {
			c.queueCapacity = append(c.queueCapacity, c.level(k, k.points.queues[q], capacity.messages))
		}
	}
	up := Telemetry{StartTime: k.era.Load().start, EndTime: k.ended.load(), Time: c.now}
	c.uptime = append(c.uptime, c.gauge(k, up.Uptime().Seconds()))
	if last := k.received.load(); !last.IsZero() {
		c.lastMessage = append(c.lastMessage, c.gauge(k, float64(last.UnixNano())/1e9))
	}
	if c.derived {
		t := k.telemetry(c.now, &c.latencies)
		c.throughput = append(c.throughput, c.gauge(k, t.Throughput()))
		c.errorRate = append(c.errorRate, c.gauge(k, t.ErrorRate()))
	}
}

func (c *collection) level(k *Kernel, set attribute.Set, n int64) metricdata.DataPoint[int64] {
	return metricdata.DataPoint[int64]{Attributes: set, StartTime: k.created, Time: c.now, Value: n}
}

func (c *collection) gauge(k *Kernel, v float64) metricdata.DataPoint[float64] {
	return metricdata.DataPoint[float64]{Attributes: k.points.kernel, Time: c.now, Value: v}
}

// metrics returns the metrics that have points.
func (c *collection) metrics() (all []metricdata.Metrics) {
	sum := func(m semconv.Metric, points []metricdata.DataPoint[int64]) {
		if len(points) > 0 {
			data := metricdata.Sum[int64]{
				Temporality: metricdata.CumulativeTemporality, IsMonotonic: m.Kind == semconv.Counter, DataPoints: points,
			}
			if data.IsMonotonic {
				data.Temporality = c.temporality()
			}
			all = append(all, metric(m, data))
		}
	}
	gauge := func(m semconv.Metric, points []metricdata.DataPoint[float64]) {
		if len(points) > 0 {
			all = append(all, metric(m, metricdata.Gauge[float64]{DataPoints: points}))
		}
	}
	sum(semconv.KernelMessagesReceived, c.received)
	sum(semconv.KernelMessagesSent, c.sent)
	sum(semconv.KernelMessagesProcessed, c.processed)
	sum(semconv.KernelMessagesDropped, c.dropped)
	if len(c.durations) > 0 {
		all = append(all, metric(semconv.KernelMessageDuration, metricdata.Histogram[float64]{
			Temporality: c.temporality(), DataPoints: c.durations,
		}))
	}
	if len(c.exponentials) > 0 {
		all = append(all, metric(semconv.KernelMessageDuration, metricdata.ExponentialHistogram[float64]{
			Temporality: c.temporality(), DataPoints: c.exponentials,
		}))
	}
	sum(semconv.KernelErrors, c.errors)
	sum(semconv.KernelQueueSize, c.queueSize)
	sum(semconv.KernelQueueCapacity, c.queueCapacity)
	sum(semconv.KernelStatus, c.status)
	gauge(semconv.KernelUptime, c.uptime)
	gauge(semconv.KernelLastMessageTime, c.lastMessage)
	gauge(semconv.KernelThroughput, c.throughput)
	gauge(semconv.KernelErrorRate, c.errorRate)
	return all
}

func metric(m semconv.Metric, data metricdata.Aggregation) metricdata.Metrics {
	return metricdata.Metrics{Name: m.Name, Description: m.Description, Unit: m.Unit, Data: data}
}
