package ringkernel

import (
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/instrument"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// ScopeName is the name of the instrumentation scope of the metrics of ring
// kernels.
const ScopeName = "github.com/nixl-otel/nixl-otel/bridge/ringkernel"

// instruments are those of a Runtime, beside the counters, which are its
// ledger's. All but duration are read by its callback.
type instruments struct {
	queueSize, queueCapacity, status metric.Int64ObservableUpDownCounter
	uptime, lastMessage              metric.Float64ObservableGauge
	throughput, errorRate            metric.Float64ObservableGauge // nil unless asked for
	duration                         metric.Float64Histogram       // nil with a LatencyProducer
}

// newInstruments makes them, and lists those that are observed.
func newInstruments(c config) (instruments, []metric.Observable, error) {
	m := instrument.NewMaker(c.provider.Meter(ScopeName))
	i := instruments{
		queueSize:     m.UpDownCounter(semconv.KernelQueueSize),
		queueCapacity: m.UpDownCounter(semconv.KernelQueueCapacity),
		status:        m.UpDownCounter(semconv.KernelStatus),
		uptime:        m.Gauge(semconv.KernelUptime),
		lastMessage:   m.Gauge(semconv.KernelLastMessageTime),
	}
	if c.derived {
		i.throughput = m.Gauge(semconv.KernelThroughput)
		i.errorRate = m.Gauge(semconv.KernelErrorRate)
	}
	if c.latencies == nil {
		i.duration = m.Histogram(semconv.KernelMessageDuration, semconv.DurationBounds())
	}
	return i, m.Observed(), m.Err()
}
