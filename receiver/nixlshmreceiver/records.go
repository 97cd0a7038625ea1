// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// recordBuilder converts slow transfers and errors to log records.
type recordBuilder struct {
	*metadata.LogsBuilder
	resources *resources
	cfg       *LogsConfig
}

// build returns log records, with a resource for each agent. It sorts the batch.
func (b *recordBuilder) build(batch []record) plog.Logs {
	slices.SortStableFunc(batch, func(x, y record) int { return cmp.Compare(x.ID, y.ID) })
	for i := range batch {
		r := &batch[i]
		to := plog.NewLogRecord()
		b.write(r, to)
		b.AppendLogRecord(to)
		if i+1 < len(batch) && r.sameRun(&batch[i+1]) {
			continue
		}
		res := pcommon.NewResource()
		putAttributes(res, b.resources.of(&engine.Snapshot{Agent: r.Agent, Layout: r.layout()}))
		b.EmitForResource(metadata.WithLogsResource(res))
	}
	logs := b.Emit()
	for _, rl := range logs.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			sl.SetSchemaUrl(semconv.SchemaURL)
		}
	}
	return logs
}

// sameRun reports whether two records have the same resource, which can change when
// the agent restarts.
func (r *record) sameRun(o *record) bool {
	return r.ID == o.ID && r.Path == o.Path && r.layout() == o.layout() && r.Resource.Equals(&o.Resource) && r.Process.Equals(&o.Process)
}

func (r *record) slow() bool { return r.transfer.Layout != 0 }

func (r *record) layout() ringbuf.Layout {
	if r.slow() {
		return r.transfer.Layout
	}
	return r.failure.Layout
}

func (b *recordBuilder) write(r *record, to plog.LogRecord) {
	if r.slow() {
		b.transfer(&r.transfer, to)
		b.time(r.transfer.Micros, r.read, to)
		return
	}
	failed(r.failure.Type, to)
	b.time(r.failure.Micros, r.read, to)
}

// time sets the time at which the receiver read an event and, if the ring has times, the
// time at which the agent recorded it.
func (*recordBuilder) time(micros uint64, read time.Time, to plog.LogRecord) {
	to.SetObservedTimestamp(pcommon.NewTimestampFromTime(read))
	if micros <= math.MaxInt64/1000 {
		to.SetTimestamp(pcommon.Timestamp(micros * 1000))
	}
}

func (b *recordBuilder) transfer(t *tally.Transfer, to plog.LogRecord) {
	to.SetEventName(semconv.EventTransferSlow)
	to.SetSeverityNumber(plog.SeverityNumberWarn)
	to.SetSeverityText("WARN")
	to.Body().SetStr(b.sentence(t))
	direction := t.Direction.String()
	attrs := to.Attributes()
	attrs.EnsureCapacity(6)
	attrs.PutStr(semconv.Direction, direction)
	attrs.PutInt(semconv.TransferSizeBytes, int64(min(t.Bytes, math.MaxInt64)))
	attrs.PutDouble(semconv.TransferSeconds, seconds(t.Duration))
	attrs.PutDouble(semconv.TransferPostSeconds, seconds(t.Post))
	attrs.PutInt(semconv.TransferBytesPerSecond, int64(min(t.Throughput(), math.MaxInt64)))
}

// sentence returns the body of a record: the transfer, and the limit that it exceeded.
func (b *recordBuilder) sentence(t *tally.Transfer) string {
	verb := "Transmitting"
	if t.Direction == tally.Receive {
		verb = "Receiving"
	}
	return fmt.Sprintf("%s %d bytes took %v, longer than slow_transfer (%v).", verb, t.Bytes, duration(t.Duration), b.cfg.SlowTransfer)
}

func failed(kind ringbuf.Type, to plog.LogRecord) {
	status := semconv.ErrorOther
	if kind.IsError() {
		status = tally.ErrorName(kind)
	}
	to.SetEventName(semconv.EventError)
	to.SetSeverityNumber(plog.SeverityNumberError)
	to.SetSeverityText("ERROR")
	to.Body().SetStr("An operation ended with the error " + status + ".")
	to.Attributes().PutStr(semconv.ErrorType, status)
}

// seconds converts microseconds in the same way as the histograms.
func seconds(micros uint64) float64 { return float64(micros) / 1e6 }

func duration(micros uint64) time.Duration {
	return time.Duration(min(micros, math.MaxInt64/1000)) * time.Microsecond
}
