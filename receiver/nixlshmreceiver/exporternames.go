// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// exporterNames adds the series of NIXL v1.4.0's own Prometheus exporter, and the two
// histograms of its main branch, with the same names and help texts. They have no
// unit, so that a Prometheus exporter adds no suffix to their names.
//
// An agent with stores has the series of NIXL's prometheus_mp exporter instead: one
// per process, with labels that identify the process.
func (p points) exporterNames(a *engine.Snapshot, hostname string) {
	agent := valid(a.Name)
	if len(a.Processes) == 0 {
		exporterPoints{points: p, labels: []label{{"hostname", hostname}, {"agent_name", agent}}}.write(a.Totals)
	}
	for i := range a.Processes {
		process := &a.Processes[i]
		labels := []label{
			{"hostname", valid(process.Host)},
			{"agent_name", agent},
			{"pid", strconv.FormatInt(process.PID, 10)},
			{"agent_instance", strconv.FormatUint(process.Instance, 10)},
		}
		if process.LocalRank != "" {
			labels = append(labels, label{"local_rank", valid(process.LocalRank)})
		}
		own := p
		own.start = min(pcommon.NewTimestampFromTime(process.Start), p.ts-1)
		exporterPoints{points: own, labels: labels, again: i > 0}.write(process.Totals)
	}
}

// exporterPoints adds the series of one agent or process.
type exporterPoints struct {
	points
	labels []label
	again  bool // an earlier process of the agent has created the metrics
}

type label struct{ name, value string }

func (e exporterPoints) write(t *tally.Totals) {
	tx, rx := t.Size(tally.Transmit), t.Size(tally.Receive)
	duration, post := t.Duration(), t.PostDuration()
	registered, deregistered := t.Registered(), t.Deregistered()

	e.counter("agent_tx_bytes_total", "Number of bytes sent by the agent", tx.Total())
	e.counter("agent_rx_bytes_total", "Number of bytes received by the agent", rx.Total())
	e.counter("agent_tx_requests_num_total", "Number of requests sent by the agent", t.Requests(tally.Transmit).Sum)
	e.counter("agent_rx_requests_num_total", "Number of requests received by the agent", t.Requests(tally.Receive).Sum)
	e.counter("agent_memory_registered_total", "Cumulative memory registered", registered.Sum)
	e.counter("agent_memory_deregistered_total", "Cumulative memory deregistered", deregistered.Sum)
	e.counter("agent_xfer_time_total", "Cumulative sum of transfer time from start to completion", duration.Total())
	e.counter("agent_xfer_post_time_total", "Cumulative sum of time from start to posting to the back-end", post.Total())
	e.counter("agent_telemetry_events_dropped_total",
		"Cumulative telemetry events dropped at the producer-side staging queue", t.Dropped().Sum)
	e.errors(t)

	e.gauge("agent_tx_last_bytes", "Bytes sent by the last request", tx.LastInt64())
	e.gauge("agent_rx_last_bytes", "Bytes received by the last request", rx.LastInt64())
	e.gauge("agent_memory_registered_last_bytes", "Memory registered by the last operation", registered.Last())
	e.gauge("agent_memory_deregistered_last_bytes", "Memory deregistered by the last operation", deregistered.Last())
	e.gauge("agent_xfer_time", "Transfer time of the last request", duration.LastInt64())
	e.gauge("agent_xfer_post_time", "Post time of the last request", post.LastInt64())

	e.histogram("agent_xfer_time_us", "Distribution of transfer time from start to completion, in microseconds", duration)
	e.histogram("agent_xfer_post_time_us", "Distribution of time from start to posting to the back-end, in microseconds", post)
}

// metric returns the metric with a name: the one that an earlier process created, or
// a new one.
func (e exporterPoints) metric(name, help string) pmetric.Metric {
	if e.again {
		if m, ok := e.find(name); ok {
			return m
		}
	}
	m := e.metrics.AppendEmpty()
	m.SetName(name)
	m.SetDescription(help)
	return m
}

func (e exporterPoints) label(attrs pcommon.Map) {
	for _, l := range e.labels {
		attrs.PutStr(l.name, l.value)
	}
}

func (e exporterPoints) sum(name, help string) pmetric.NumberDataPointSlice {
	m := e.metric(name, help)
	if m.Type() == pmetric.MetricTypeEmpty {
		m.SetEmptySum().SetIsMonotonic(true)
		m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	return m.Sum().DataPoints()
}

func (e exporterPoints) point(list pmetric.NumberDataPointSlice, value int64) pmetric.NumberDataPoint {
	dp := list.AppendEmpty()
	dp.SetStartTimestamp(e.start)
	dp.SetTimestamp(e.ts)
	dp.SetIntValue(value)
	e.label(dp.Attributes())
	return dp
}

func (e exporterPoints) counter(name, help string, total tally.Sum) {
	e.point(e.sum(name, help), total.Int64())
}

func (e exporterPoints) errors(t *tally.Totals) {
	list := e.sum("agent_errors_total", "Cumulative error count by status")
	for kind := ringbuf.TypeErrNotPosted; kind.IsError(); kind++ {
		e.point(list, t.Errors(kind).Sum.Int64()).Attributes().PutStr("status", tally.ErrorName(kind))
	}
}

func (e exporterPoints) gauge(name, help string, value int64) {
	m := e.metric(name, help)
	if m.Type() == pmetric.MetricTypeEmpty {
		m.SetEmptyGauge()
	}
	e.point(m.Gauge().DataPoints(), value)
}

// histogram adds a histogram in microseconds. NIXL's histograms have explicit bounds,
// so other kinds are left out.
func (e exporterPoints) histogram(name, help string, h *tally.Histogram) {
	if h.Kind() != tally.Explicit {
		return
	}
	m := e.metric(name, help)
	if m.Type() == pmetric.MetricTypeEmpty {
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	dp := e.fill(m.Histogram().DataPoints().AppendEmpty(), h)
	dp.SetSum(h.Total().Float64())
	if h.HasRange() {
		dp.SetMin(micros(h.Min()))
		dp.SetMax(micros(h.Max()))
	}
	for i, bound := range h.Bounds() {
		dp.ExplicitBounds().SetAt(i, micros(bound))
	}
	e.label(dp.Attributes())
}

// micros converts seconds to microseconds, rounded to a nanosecond. Without rounding,
// one value in thirty has a rounding error, which would show in the labels of buckets.
func micros(seconds float64) float64 { return math.Round(seconds*1e9) / 1e3 }
