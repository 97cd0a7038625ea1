// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package rings

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/nixl-otel/nixl-otel/bridge/internal/text"
	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// feeder converts the events of rings and passes them to sinks. Only the goroutine
// that drains the rings uses it.
type feeder struct {
	sinks []sink.Sink
	now   func() time.Time

	batch   []sink.Event
	failing bool // the last write failed
}

// maxBatch bounds the feeder's memory.
const maxBatch = 4096 // events

// tap passes a batch of events to the sinks before the events are committed. The batch
// is in the ring's memory.
func (f *feeder) tap(a engine.Agent, b ringbuf.Batch) {
	name, read := text.Valid(a.Name), f.now()
	for from := 0; from < b.Len(); from += maxBatch {
		f.batch = f.batch[:0]
		for i := from; i < min(from+maxBatch, b.Len()); i++ {
			e := b.Event(i)
			f.batch = append(f.batch, sink.NewEvent(name, b.Layout(), &e, read))
		}
		f.write()
	}
}

// write passes the batch to the sinks.
func (f *feeder) write() {
	var errs []error
	for _, s := range f.sinks {
		errs = append(errs, s.Write(f.batch))
	}
	err := errors.Join(errs...)
	if err != nil && !f.failing { // on a goroutine of its own, because the handler may close the Producer
		go otel.Handle(fmt.Errorf("a sink of NIXL's events failed and lost events; further errors aren't reported until a write succeeds: %w", err))
	}
	f.failing = err != nil
}
