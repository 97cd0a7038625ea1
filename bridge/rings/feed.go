package rings

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// feeder turns what comes out of the rings into the events of sinks.
type feeder struct {
	sinks []sink.Sink
	log   *slog.Logger
	now   func() time.Time

	mu    sync.Mutex // guards what follows; rings of several file systems are drained at once, and a sink is called by one goroutine at a time
	batch []sink.Event
	names map[ringbuf.Name]string // so that a name that comes again costs nothing
	told  bool                    // that a sink fails
}

const (
	maxBatch = 4096 // events, which bounds the feeder's memory
	maxNames = 1024 // which come from another process
)

// tap takes the events of a drain, before they are committed. The batch is in
// place in the ring.
func (f *feeder) tap(a drain.Agent, b ringbuf.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
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

// nameOf is the event's name. A type that the layout doesn't know may mean
// another thing there than what a newer layout calls it.
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

// write hands the batch to the sinks.
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
	if err != nil && !f.told {
		f.log.Error("events were not taken by a sink; this is said once until they are again", "error", err)
	}
	f.told = err != nil
}
