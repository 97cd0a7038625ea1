package tally

import "github.com/nixl-otel/nixl-otel/ringbuf"

// Total is the total of one type of event.
type Total struct {
	Events uint64
	Sum    Sum // of the values
	last   uint64
}

func (t *Total) record(v uint64) {
	t.Events++
	t.Sum.Add(v)
	t.last = v
}

// Last is the newest value, or the largest int64.
func (t *Total) Last() int64 { return saturate(t.last) }

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
	return &Agent{
		sizes:    [2]Histogram{newHistogram(s.size), newHistogram(s.size)},
		duration: newHistogram(s.duration),
		post:     newHistogram(s.duration),
		names:    newNames(s.maxNames),
	}
}

// Add counts the events of a batch.
func (a *Agent) Add(b ringbuf.Batch) {
	switch b.Layout() {
	case ringbuf.V1:
		for i := range b.Timed() {
			e := &b.Timed()[i]
			a.named(e.Category, &e.Name, e.Value)
		}
	case ringbuf.V2Named:
		for i := range b.Named() {
			e := &b.Named()[i]
			a.named(e.Category, &e.Name, e.Value)
		}
	case ringbuf.V2:
		for i := range b.Categorized() {
			e := &b.Categorized()[i]
			a.categorized(e.Category, e.Type, e.Value)
		}
	case ringbuf.V3:
		a.typed(b.Typed(), ringbuf.V3)
	case ringbuf.V4:
		a.grouped(b.Typed())
	}
}

// typed counts events that have a type only.
func (a *Agent) typed(events []ringbuf.TypedEvent, layout ringbuf.Layout) {
	for i := range events {
		a.one(events[i].Type, events[i].Value, layout)
	}
}

// grouped is typed for events whose groups are to be whole. Nearly every
// event belongs to a whole group, which is counted in one go.
func (a *Agent) grouped(events []ringbuf.TypedEvent) {
	for i := 0; i < len(events); {
		if rest := events[i:]; !a.groups.open() && len(rest) >= groupSize {
			if dir, ok := transfer((*[groupSize]ringbuf.TypedEvent)(rest)); ok {
				a.post.record(rest[0].Value)
				a.duration.record(rest[1].Value)
				a.sizes[dir].record(rest[2].Value)
				a.counters[ringbuf.TypeTxRequests+ringbuf.Type(dir)].record(rest[3].Value)
				a.groups.synced = true
				i += groupSize
				continue
			}
		}
		a.groups.add(events[i].Type)
		a.one(events[i].Type, events[i].Value, ringbuf.V4)
		i++
	}
}

// transfer says whether four events are those of one transfer, and which
// direction it had.
func transfer(e *[groupSize]ringbuf.TypedEvent) (Direction, bool) {
	dir := e[2].Type - ringbuf.TypeTxBytes
	return Direction(dir), e[0].Type == ringbuf.TypeXferPostTime && e[1].Type == ringbuf.TypeXferTime && //nolint:gosec // one bit once ok
		dir <= ringbuf.TypeRxBytes && e[3].Type == ringbuf.TypeTxRequests+dir
}

// one counts an event of a layout without categories.
func (a *Agent) one(t ringbuf.Type, v uint64, layout ringbuf.Layout) {
	if !layout.Knows(t) {
		a.unknown(a.names.typed(noCategory, t, layout), noCategory, v)
		return
	}
	a.known(t, v)
}

// categorized counts an event of layout V2. Where the category isn't the
// type's own, neither can be believed.
func (a *Agent) categorized(c ringbuf.Category, t ringbuf.Type, v uint64) {
	if !ringbuf.V2.Knows(t) || t.Category() != c {
		a.unknown(a.names.typed(c, t, ringbuf.V2), c, v)
		return
	}
	a.known(t, v)
}

// named counts an event of a layout with names.
func (a *Agent) named(c ringbuf.Category, name *ringbuf.Name, v uint64) {
	if a.spellings == nil {
		a.spellings = new(spellings)
	}
	s := a.spellings.find(c, name, &a.names)
	if s.series != nil {
		a.unknown(s.series, c, v)
		return
	}
	if s.legacy {
		a.legacy[s.kind]++
	}
	a.known(s.kind, v)
}

// unknown counts an event beyond the catalogue.
func (a *Agent) unknown(s *Series, c ringbuf.Category, v uint64) {
	s.record(v)
	if c == ringbuf.CategoryError {
		a.otherErrors.Add(v)
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
