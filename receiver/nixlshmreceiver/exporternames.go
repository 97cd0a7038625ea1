package nixlshmreceiver

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// exporterNames writes the series that NIXL v1.4.0's own Prometheus exporter
// serves, and the two histograms of its main branch, under the same names and
// in the same units. None has a unit, so that a Prometheus exporter adds no
// suffix to its name.
func (p points) exporterNames(t *tally.Totals, hostname, agent string) {
	e := exporterPoints{p, hostname, agent}
	tx, rx := t.Size(tally.Transmit), t.Size(tally.Receive)
	duration, post := t.Duration(), t.PostDuration()
	registered, deregistered := t.Registered(), t.Deregistered()

	e.counter("agent_tx_bytes_total", tx.Total())
	e.counter("agent_rx_bytes_total", rx.Total())
	e.counter("agent_tx_requests_num_total", t.Requests(tally.Transmit).Sum)
	e.counter("agent_rx_requests_num_total", t.Requests(tally.Receive).Sum)
	e.counter("agent_memory_registered_total", registered.Sum)
	e.counter("agent_memory_deregistered_total", deregistered.Sum)
	e.counter("agent_xfer_time_total", duration.Total())
	e.counter("agent_xfer_post_time_total", post.Total())
	e.counter("agent_telemetry_events_dropped_total", t.Dropped().Sum)
	e.errors(t)

	e.gauge("agent_tx_last_bytes", tx.LastInt64())
	e.gauge("agent_rx_last_bytes", rx.LastInt64())
	e.gauge("agent_memory_registered_last_bytes", registered.Last())
	e.gauge("agent_memory_deregistered_last_bytes", deregistered.Last())
	e.gauge("agent_xfer_time", duration.LastInt64())
	e.gauge("agent_xfer_post_time", post.LastInt64())

	e.histogram("agent_xfer_time_us", duration)
	e.histogram("agent_xfer_post_time_us", post)
}

type exporterPoints struct {
	points
	hostname, agent string
}

func (e exporterPoints) metric(name string) pmetric.Metric {
	m := e.metrics.AppendEmpty()
	m.SetName(name)
	return m
}

func (e exporterPoints) label(attrs pcommon.Map) {
	attrs.PutStr("hostname", e.hostname)
	attrs.PutStr("agent_name", e.agent)
}

func (e exporterPoints) sum(name string) pmetric.NumberDataPointSlice {
	s := e.metric(name).SetEmptySum()
	s.SetIsMonotonic(true)
	s.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	return s.DataPoints()
}

func (e exporterPoints) point(list pmetric.NumberDataPointSlice, value int64) pmetric.NumberDataPoint {
	dp := list.AppendEmpty()
	dp.SetStartTimestamp(e.start)
	dp.SetTimestamp(e.ts)
	dp.SetIntValue(value)
	e.label(dp.Attributes())
	return dp
}

func (e exporterPoints) counter(name string, total tally.Sum) {
	e.point(e.sum(name), total.Int64())
}

func (e exporterPoints) errors(t *tally.Totals) {
	list := e.sum("agent_errors_total")
	for kind := ringbuf.TypeErrNotPosted; kind.IsError(); kind++ {
		e.point(list, t.Errors(kind).Sum.Int64()).Attributes().PutStr("status", errorTypes[kind])
	}
}

func (e exporterPoints) gauge(name string, value int64) {
	e.point(e.metric(name).SetEmptyGauge().DataPoints(), value)
}

// histogram writes a distribution in microseconds. NIXL's has explicit bounds,
// so that there is none where the receiver keeps others.
func (e exporterPoints) histogram(name string, h *tally.Histogram) {
	if h.Kind() != tally.Explicit {
		return
	}
	metric := e.metric(name).SetEmptyHistogram()
	metric.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	dp := e.fill(metric.DataPoints().AppendEmpty(), h)
	dp.SetSum(h.Total().Float64())
	dp.SetMin(micros(h.Min()))
	dp.SetMax(micros(h.Max()))
	for i, bound := range h.Bounds() {
		dp.ExplicitBounds().SetAt(i, micros(bound))
	}
	e.label(dp.Attributes())
}

// micros is seconds in microseconds. The product alone is off by a rounding
// for one value in thirty, and a bound is a label, letter for letter; whoever
// sets bounds between two microseconds gets them to the nanosecond.
func micros(seconds float64) float64 { return math.Round(seconds*1e9) / 1e3 }
