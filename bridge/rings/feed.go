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

// tap passes a batch of events to the sinks before the events are committed.
func (f *feeder) tap(a engine.Agent, b ringbuf.Batch) {
	name, read := text.Valid(a.Name), f.now()
	f.batch = f.batch[:0]
	for i := range b.Len() {
		e := b.Event(i)
		f.batch = append(f.batch, sink.NewEvent(name, b.Layout(), &e, read))
	}
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
