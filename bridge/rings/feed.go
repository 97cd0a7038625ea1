// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package rings

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// feeder converts the events of rings and passes them to sinks. Only the goroutine
// that drains the rings uses it.
type feeder struct {
	sinks []sink.Sink
	log   *slog.Logger
	now   func() time.Time

	batch   []sink.Event
	names   map[ringbuf.Name]string // cache, because converting a name allocates
	failing bool                    // the last write failed
}

// These limits bound the feeder's memory, because other processes control the names.
const (
	maxBatch = 4096 // events
	maxNames = 1024
)

// tap passes a batch of events to the sinks before the events are committed. The batch
// is in the ring's memory.
func (f *feeder) tap(a drain.Agent, b ringbuf.Batch) {
	name, read := valid(a.Name), f.now()
	for i := range b.Len() {
		e := b.Event(i)
		out := sink.Event{Agent: name, Time: read, Category: e.Category, Value: e.Value}
		if b.Layout() == ringbuf.V1 {
			out.Time = time.UnixMicro(int64(e.TimestampMicros))
		}
		out.Name = f.nameOf(&e, b.Layout())
		if f.batch = append(f.batch, out); len(f.batch) == maxBatch {
			f.write()
		}
	}
	f.write()
}

// nameOf returns the name of an event. A type that the ring's layout doesn't define is
// unknown, even if a newer layout defines it: its meaning may differ.
func (f *feeder) nameOf(e *ringbuf.Event, l ringbuf.Layout) string {
	if !e.Named {
		if !l.Knows(e.Type) {
			return fmt.Sprintf("unknown_event_%d", uint32(e.Type))
		}
		return e.Type.String()
	}
	name, ok := f.names[e.Name]
	if ok {
		return name
	}
	if f.names == nil || len(f.names) >= maxNames {
		f.names = make(map[ringbuf.Name]string)
	}
	name = valid(e.Name.String())
	f.names[e.Name] = name
	return name
}

// write passes the batch to the sinks.
func (f *feeder) write() {
	if len(f.batch) == 0 {
		return
	}
	var errs []error
	for _, s := range f.sinks {
		errs = append(errs, s.Write(f.batch))
	}
	f.batch = f.batch[:0]
	err := errors.Join(errs...)
	if err != nil && !f.failing {
		f.log.Error("sink failed and lost events; check the sink; further errors are not logged until a write succeeds", "error", err)
	}
	f.failing = err != nil
}
