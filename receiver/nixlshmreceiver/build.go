// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"path/filepath"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/identity"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// builder converts totals to metrics. Sums and gauges use the code that mdatagen
// generates; the rest is in [points].
type builder struct {
	*metadata.MetricsBuilder
	cfg       *Config
	hostname  string
	resources *metadata.ResourceBuilder
	emission  []metadata.ResourceMetricsOption // calls finish

	// The agent that write converts, and the timestamps of its points.
	agent     *drain.Snapshot
	start, ts pcommon.Timestamp
}

func newBuilder(cfg *Config, mb *metadata.MetricsBuilder, hostname string) *builder {
	b := &builder{
		MetricsBuilder: mb, cfg: cfg, hostname: valid(hostname),
		resources: mb.NewResourceBuilder(),
	}
	b.emission = []metadata.ResourceMetricsOption{metadata.With(b.finish)}
	return b
}

// build returns the totals of agents, which were collected at or after taken. Each
// agent is a resource.
func (b *builder) build(taken time.Time, agents []drain.Snapshot) pmetric.Metrics {
	for i := range agents {
		b.write(&agents[i], pcommon.NewTimestampFromTime(taken))
	}
	b.agent = nil
	metrics := b.Emit()
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			sm.SetSchemaUrl(semconv.SchemaURL) // mdatagen sets that of the resource
		}
	}
	return metrics
}

func (b *builder) write(a *drain.Snapshot, taken pcommon.Timestamp) {
	b.agent, b.start = a, pcommon.NewTimestampFromTime(a.Start)
	// The ring may have been opened a moment ago, or the clock may have been set
	// back. Backends reject a point before its start, and cumulative_to_delta drops
	// a first point at its start.
	b.ts = max(taken, b.start+1)
	b.StartAt(b.start)
	b.transfers(a.Totals)
	b.memory(a.Totals)
	b.errors(a.Totals)
	b.RecordNixlTelemetryEventsDroppedDataPoint(b.ts, a.Totals.Dropped().Sum.Int64())
	if len(a.Processes) == 0 { // not a store, which has neither events nor a ring
		b.events(a.Totals)
		b.ring(a.Totals, a.Layout)
	}
	b.up(a.Up)
	b.EmitForResource(b.emission...)
}

// finish adds what the generated code leaves out.
func (b *builder) finish(res pcommon.Resource, metrics pmetric.MetricSlice) {
	b.resource(b.agent, res)
	p, t := points{metrics, b.start, b.ts}, b.agent.Totals
	p.histograms(t)
	p.overflow(t, &b.cfg.Metrics)
	if b.cfg.ExporterNames {
		p.exporterNames(b.agent, b.hostname)
	}
}

// resourceAttributes is the maximum number of attributes of a resource, not counting
// those in the agent's environment.
const resourceAttributes = 11

func (b *builder) resource(a *drain.Snapshot, res pcommon.Resource) {
	rb := b.resources
	rb.EnsureCapacity(resourceAttributes)
	rb.SetServiceName(b.cfg.ServiceName)
	rb.SetServiceInstanceID(identity.InstanceID(b.hostname, a.ID))
	rb.SetHostName(b.hostname)
	rb.SetNixlAgentName(valid(a.Name))
	rb.SetNixlTelemetryLayout(a.LayoutName())
	rb.SetNixlTelemetryPath(valid(filepath.Join(a.Dir, a.Name)))
	if n := len(a.Processes); n > 0 {
		rb.SetNixlTelemetryPath(valid(filepath.Join(a.Dir, filepath.Base(a.Path))))
		if rank := a.Processes[n-1].LocalRank; rank != "" {
			rb.SetNixlLocalRank(valid(rank))
		}
	}
	var others []attribute.KeyValue
	for _, kv := range a.Resource.ToSlice() {
		switch kv.Key {
		case semconv.ServiceName:
			rb.SetServiceName(valid(kv.Value.AsString()))
		case semconv.K8SPodUID:
			rb.SetK8sPodUID(kv.Value.AsString())
		case semconv.ContainerID:
			rb.SetContainerID(kv.Value.AsString())
		case semconv.ProcessPID:
			rb.SetProcessPid(kv.Value.AsInt64())
		case semconv.ProcessExecutableName:
			rb.SetProcessExecutableName(valid(kv.Value.AsString()))
		case semconv.LocalRank:
			rb.SetNixlLocalRank(valid(kv.Value.AsString()))
		default:
			others = append(others, kv)
		}
	}
	rb.MoveTo(res)
	for _, kv := range others {
		res.Attributes().PutStr(valid(string(kv.Key)), valid(kv.Value.AsString()))
	}
}

// valid converts a file name to valid UTF-8. OTLP rejects a whole request for one
// string that isn't.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

var directions = [...]metadata.AttributeNixlTransferDirection{
	tally.Transmit: metadata.AttributeNixlTransferDirectionTransmit,
	tally.Receive:  metadata.AttributeNixlTransferDirectionReceive,
}

func (b *builder) transfers(t *tally.Totals) {
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

func (b *builder) memory(t *tally.Totals) {
	registered, deregistered := t.Registered(), t.Deregistered()
	if registered.Events > 0 {
		b.RecordNixlMemoryRegisteredDataPoint(b.ts, registered.Sum.Int64())
		b.RecordNixlMemoryLastSizeDataPoint(b.ts, registered.Last(), metadata.AttributeNixlMemoryOperationRegister)
	}
	if deregistered.Events > 0 {
		b.RecordNixlMemoryDeregisteredDataPoint(b.ts, deregistered.Sum.Int64())
		b.RecordNixlMemoryLastSizeDataPoint(b.ts, deregistered.Last(), metadata.AttributeNixlMemoryOperationDeregister)
	}
	if usage, known := t.MemoryUsage(); known && registered.Events+deregistered.Events > 0 {
		b.RecordNixlMemoryUsageDataPoint(b.ts, usage)
	}
}

// errorTypes are the values of error.type by the type of the ring's event.
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

// errors reports counts from 0 on, so that an alert can fire on the first error.
func (b *builder) errors(t *tally.Totals) {
	for kind := ringbuf.TypeErrNotPosted; kind.IsError(); kind++ {
		b.RecordNixlErrorsDataPoint(b.ts, t.Errors(kind).Sum.Int64(), errorTypes[kind])
	}
	if other := t.OtherErrors(); other != (tally.Sum{}) {
		b.RecordNixlErrorsDataPoint(b.ts, other.Int64(), semconv.ErrorOther)
	}
}

func (b *builder) events(t *tally.Totals) {
	t.Events(func(category, name string, events uint64) {
		b.RecordNixlEventsDataPoint(b.ts, int64(events), category, name)
	})
	for i := range t.Series() {
		if s := &t.Series()[i]; s.Valued {
			b.RecordNixlEventValueDataPoint(b.ts, s.Sum.Int64(), s.Category, s.Name)
			b.RecordNixlEventLastValueDataPoint(b.ts, s.Last(), s.Category, s.Name)
		}
	}
}

// up reports whether the agent runs, if the kernel can report it.
func (b *builder) up(up drain.Up) {
	switch up {
	case drain.UpYes:
		b.RecordNixlAgentUpDataPoint(b.ts, 1)
	case drain.UpNo:
		b.RecordNixlAgentUpDataPoint(b.ts, 0)
	case drain.UpUnknown:
	}
}

// ring reports the state of the ring. Like errors, losses are reported from 0 on.
func (b *builder) ring(t *tally.Totals, layout ringbuf.Layout) {
	b.RecordNixlTelemetryRingCapacityDataPoint(b.ts, int64(t.Capacity()))
	b.RecordNixlTelemetryRingUtilizationDataPoint(b.ts, t.Utilization())
	b.RecordNixlTelemetryRingSaturationsDataPoint(b.ts, int64(t.Saturations()))
	b.RecordNixlTelemetryRingRestartsDataPoint(b.ts, int64(t.Restarts()))
	b.RecordNixlTelemetryRingLossyRestartsDataPoint(b.ts, int64(t.LossyRestarts()))
	b.RecordNixlTelemetryRingForeignReadsDataPoint(b.ts, int64(t.ForeignReads()))
	if layout >= ringbuf.V4 || t.TornGroups() > 0 {
		b.RecordNixlTelemetryRingTornGroupsDataPoint(b.ts, int64(t.TornGroups()))
	}
}
