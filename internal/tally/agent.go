package tally

import "github.com/nixl-otel/nixl-otel/ringbuf"

// Agent is the totals of one agent. It isn't safe for concurrent use.
type Agent struct {
	counters [ringbuf.Types]Total  // of the types without a histogram
	legacy   [ringbuf.Types]uint64 // events that came by a name that their type no longer has
	sizes    [2]Histogram          // by Direction
	duration Histogram
	post     Histogram
	// otherErrors are errors of a status that the catalogue doesn't know.
	otherErrors Sum
	names       names
	spellings   *spellings // only for rings with names
	groups      groups

	// What the agent had registered and deregistered when it last started.
	registeredBefore, deregisteredBefore Sum

	health health
}

// NewAgent makes the totals of an agent that has done nothing yet.
func NewAgent(s *Shape) *Agent {
	a := &Agent{names: newNames(s.maxNames)}
	a.sizes[Transmit].init(s.size)
	a.sizes[Receive].init(s.size)
	a.duration.init(s.duration)
	a.post.init(s.duration)
	return a
}

// Add counts the events of a batch. Where the memory behind the batch goes
// away, which is a panic that the ring's reader turns into an error, part of
// the batch is counted; of its last run of transfers maybe only in histograms.
func (a *Agent) Add(b ringbuf.Batch) {
	switch b.Layout() {
	case ringbuf.V1:
		a.timed(b.Timed())
	case ringbuf.V2:
		a.categorized(b.Categorized())
	case ringbuf.V2Named:
		a.named(b.Named())
	case ringbuf.V3:
		a.typed(b.Typed())
	case ringbuf.V4, ringbuf.V5:
		a.grouped(b.Typed())
	}
}

// typed counts events that have a type only.
func (a *Agent) typed(events []ringbuf.TypedEvent) {
	for i := 0; i < len(events); i++ {
		if n := a.transfers(ringbuf.Quads(events[i:])); n > 0 {
			i += n*groupSize - 1
			continue
		}
		e := &events[i]
		t, v := e.Type, e.Value
		if ringbuf.V3.Knows(t) {
			a.known(t, v)
		} else {
			a.unknown(noCategory, t, v, ringbuf.V3)
		}
	}
}

// grouped counts events that have a type only, and whose groups are to be
// whole.
func (a *Agent) grouped(events []ringbuf.TypedEvent) {
	for i := 0; i < len(events); i++ {
		if !a.groups.open() {
			if n := a.transfers(ringbuf.Quads(events[i:])); n > 0 {
				i += n*groupSize - 1
				continue
			}
		}
		e := &events[i]
		t, v := e.Type, e.Value
		a.groups.add(t)
		if ringbuf.V4.Knows(t) {
			a.known(t, v)
		} else {
			a.unknown(noCategory, t, v, ringbuf.V4)
		}
	}
}

// known counts an event of the catalogue.
func (a *Agent) known(t ringbuf.Type, v uint64) {
	switch t {
	case ringbuf.TypeTxBytes, ringbuf.TypeRxBytes:
		a.sizes[t].record(v)
	case ringbuf.TypeXferTime:
		a.duration.record(v)
	case ringbuf.TypeXferPostTime:
		a.post.record(v)
	default:
		a.counters[t].record(v)
	}
}

// unknown counts an event whose type isn't in the catalogue, or not in its
// category.
func (a *Agent) unknown(c ringbuf.Category, t ringbuf.Type, v uint64, l ringbuf.Layout) {
	a.names.typed(c, t, l).record(v)
	if c == ringbuf.CategoryError && !ringbuf.V2.Knows(t) {
		a.otherErrors.Add(v)
	}
}
