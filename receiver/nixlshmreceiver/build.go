package nixlshmreceiver

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/internal/watch"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// builder writes totals as metrics: sums and gauges by what mdatagen has
// generated, the rest by hand.
type builder struct {
	*metadata.MetricsBuilder
	cfg       *Config
	hostname  string
	now       func() time.Time
	taken     pcommon.Timestamp // when the collection began
	resources *metadata.ResourceBuilder
	emission  []metadata.ResourceMetricsOption // calls finish

	// What is being written.
	view      watch.View
	start, ts pcommon.Timestamp // of its points
}

func newBuilder(cfg *Config, mb *metadata.MetricsBuilder, hostname string, now func() time.Time) *builder {
	b := &builder{
		MetricsBuilder: mb, cfg: cfg, hostname: valid(hostname), now: now,
		resources: mb.NewResourceBuilder(),
	}
	b.emission = []metadata.ResourceMetricsOption{metadata.With(b.finish)}
	return b
}

// build collects the totals of all agents and writes them, a resource for each.
func (b *builder) build(ctx context.Context, w *watch.Watcher) pmetric.Metrics {
	b.taken = pcommon.NewTimestampFromTime(b.now())
	w.Collect(ctx, b.agent)
	b.view = watch.View{} // an agent may be given up before the next
	return b.Emit()
}

func (b *builder) agent(v watch.View) {
	b.view, b.start = v, pcommon.NewTimestampFromTime(v.Start)
	// A ring may have been opened just now, and a clock may be set back: a
	// point before its start is one that backends refuse.
	b.ts = max(b.taken, b.start)
	b.StartAt(b.start)
	b.transfers(v.Tally)
	b.memory(v.Tally)
	b.errors(v.Tally)
	b.events(v.Tally)
	b.health(v.Tally, v.Layout)
	b.EmitForResource(b.emission...)
	v.Tally.Rest()
}

// finish writes what the generated code leaves out.
func (b *builder) finish(res pcommon.Resource, metrics pmetric.MetricSlice) {
	b.resource(&b.view, res)
	p, t := points{metrics, b.start, b.ts}, b.view.Tally
	p.histograms(t)
	p.overflow(t, &b.cfg.Metrics)
	if b.cfg.ExporterNames {
		p.exporterNames(t, b.hostname, valid(b.view.Name))
	}
}

// resourceAttributes is how many a resource has at most.
const resourceAttributes = 6

func (b *builder) resource(v *watch.View, res pcommon.Resource) {
	rb := b.resources
	rb.EnsureCapacity(resourceAttributes)
	rb.SetServiceName(semconv.ServiceNameNIXL)
	rb.SetServiceInstanceID(v.InstanceID(b.hostname))
	rb.SetHostName(b.hostname)
	rb.SetNixlAgentName(valid(v.Name))
	rb.SetNixlTelemetryLayout(v.Layout.String())
	rb.SetNixlTelemetryPath(valid(v.Path))
	rb.MoveTo(res)
}

// valid makes the name of a file fit for OTLP, which refuses a whole request
// for one string that isn't UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

var directions = [...]metadata.AttributeNixlTransferDirection{
	tally.Transmit: metadata.AttributeNixlTransferDirectionTransmit,
	tally.Receive:  metadata.AttributeNixlTransferDirectionReceive,
}

func (b *builder) transfers(t *tally.Agent) {
	for d, direction := range directions {
		if size := t.Size(tally.Direction(d)); size.Count() > 0 {
			b.RecordNixlTransferIoDataPoint(b.ts, size.Total().Int64(), direction)
			b.RecordNixlTransferLastSizeDataPoint(b.ts, size.LastInt64(), direction)
		}
		if requests := t.Requests(tally.Direction(d)); requests.Events > 0 {
			b.RecordNixlTransferRequestsDataPoint(b.ts, requests.Sum.Int64(), direction)
		}
	}
	if h := t.Duration(); h.Count() > 0 {
		b.RecordNixlTransferLastDurationDataPoint(b.ts, h.Last())
	}
	if h := t.PostDuration(); h.Count() > 0 {
		b.RecordNixlTransferLastPostDurationDataPoint(b.ts, h.Last())
	}
}

func (b *builder) memory(t *tally.Agent) {
	registered, deregistered := t.Registered(), t.Deregistered()
	if registered.Events > 0 {
		b.RecordNixlMemoryRegisteredDataPoint(b.ts, registered.Sum.Int64())
		b.RecordNixlMemoryLastSizeDataPoint(b.ts, registered.Last(), metadata.AttributeNixlMemoryOperationRegister)
	}
	if deregistered.Events > 0 {
		b.RecordNixlMemoryDeregisteredDataPoint(b.ts, deregistered.Sum.Int64())
		b.RecordNixlMemoryLastSizeDataPoint(b.ts, deregistered.Last(), metadata.AttributeNixlMemoryOperationDeregister)
	}
	if registered.Events > 0 || deregistered.Events > 0 {
		b.RecordNixlMemoryUsageDataPoint(b.ts, t.MemoryUsage())
	}
}

// errorTypes are the values of error.type, by the ring's types.
var errorTypes = [ringbuf.Types]string{
	ringbuf.TypeErrNotPosted:        semconv.ErrorNotPosted,
	ringbuf.TypeErrInvalidParam:     semconv.ErrorInvalidParam,
	ringbuf.TypeErrBackend:          semconv.ErrorBackend,
	ringbuf.TypeErrNotFound:         semconv.ErrorNotFound,
	ringbuf.TypeErrMismatch:         semconv.ErrorMismatch,
	ringbuf.TypeErrNotAllowed:       semconv.ErrorNotAllowed,
	ringbuf.TypeErrRepostActive:     semconv.ErrorRepostActive,
	ringbuf.TypeErrUnknown:          semconv.ErrorUnknown,
	ringbuf.TypeErrNotSupported:     semconv.ErrorNotSupported,
	ringbuf.TypeErrRemoteDisconnect: semconv.ErrorRemoteDisconnect,
	ringbuf.TypeErrCanceled:         semconv.ErrorCanceled,
	ringbuf.TypeErrNoTelemetry:      semconv.ErrorNoTelemetry,
}

// errors are reported from 0 on, so that an alert can fire on the first.
func (b *builder) errors(t *tally.Agent) {
	for kind := ringbuf.TypeErrNotPosted; kind.IsError(); kind++ {
		b.RecordNixlErrorsDataPoint(b.ts, t.Errors(kind).Sum.Int64(), errorTypes[kind])
	}
	if other := t.OtherErrors(); other != (tally.Sum{}) {
		b.RecordNixlErrorsDataPoint(b.ts, other.Int64(), semconv.ErrorOther)
	}
}

func (b *builder) events(t *tally.Agent) {
	t.Events(func(category, name string, events uint64) {
		b.RecordNixlEventsDataPoint(b.ts, int64(events), category, name)
	})
	for _, s := range t.Series() {
		if s.Valued {
			b.RecordNixlEventValueDataPoint(b.ts, s.Sum.Int64(), s.Category, s.Name)
			b.RecordNixlEventLastValueDataPoint(b.ts, s.Last(), s.Category, s.Name)
		}
	}
}

// health is what is known of the ring. Loss is reported from 0 on, as errors
// are.
func (b *builder) health(t *tally.Agent, layout ringbuf.Layout) {
	b.RecordNixlTelemetryEventsDroppedDataPoint(b.ts, t.Dropped().Sum.Int64())
	b.RecordNixlTelemetryRingCapacityDataPoint(b.ts, int64(t.Capacity()))
	b.RecordNixlTelemetryRingUtilizationDataPoint(b.ts, t.Utilization())
	b.RecordNixlTelemetryRingSaturationsDataPoint(b.ts, int64(t.Saturations()))
	b.RecordNixlTelemetryRingRestartsDataPoint(b.ts, int64(t.Restarts()))
	b.RecordNixlTelemetryRingForeignReadsDataPoint(b.ts, int64(t.ForeignReads()))
	if layout >= ringbuf.V4 || t.TornGroups() > 0 {
		b.RecordNixlTelemetryRingTornGroupsDataPoint(b.ts, int64(t.TornGroups()))
	}
}
