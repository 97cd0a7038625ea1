package tally

import "github.com/nixl-otel/nixl-otel/ringbuf"

// Direction is the way that a transfer moved data, seen from the agent.
type Direction uint8

// The directions.
const (
	Transmit Direction = iota
	Receive
)

// Size is the distribution of the bytes of completed transfers. Its total is
// the bytes that were moved.
func (a *Agent) Size(d Direction) *Histogram { return &a.sizes[d] }

// Duration is the distribution of transfer times.
func (a *Agent) Duration() *Histogram { return &a.duration }

// PostDuration is the distribution of post times.
func (a *Agent) PostDuration() *Histogram { return &a.post }

// Requests is the completed transfers.
func (a *Agent) Requests(d Direction) *Total {
	return &a.counters[ringbuf.TypeTxRequests+ringbuf.Type(d)]
}

// Registered is the memory that was registered, in bytes.
func (a *Agent) Registered() *Total { return &a.counters[ringbuf.TypeMemoryRegistered] }

// Deregistered is the memory that was deregistered, in bytes.
func (a *Agent) Deregistered() *Total { return &a.counters[ringbuf.TypeMemoryDeregistered] }

// MemoryUsage is what was registered less what was deregistered since the
// agent started, in bytes: the memory of an earlier run went with its process.
// It is negative where the registration went unseen.
func (a *Agent) MemoryUsage() int64 {
	registered := a.Registered().Sum
	registered.sub(a.registeredBefore)
	deregistered := a.Deregistered().Sum
	deregistered.sub(a.deregisteredBefore)
	return registered.less(deregistered)
}

// Errors is the errors of a status.
func (a *Agent) Errors(t ringbuf.Type) *Total { return &a.counters[t] }

// OtherErrors is the sum of errors of a status that the catalogue doesn't know.
func (a *Agent) OtherErrors() Sum { return a.otherErrors }

// Dropped is the events that the agent says it dropped before they reached the
// ring.
func (a *Agent) Dropped() *Total { return &a.counters[ringbuf.TypeEventsDropped] }

// Events calls fn with the number of events of each category and name that
// occurred, but for those in [Agent.Overflow].
func (a *Agent) Events(fn func(category, name string, events uint64)) {
	for t := range ringbuf.Type(ringbuf.Types) {
		n, legacy := a.eventsOf(t), a.legacy[t]
		if n > legacy {
			fn(TypeCategory(t), t.String(), n-legacy)
		}
		if legacy > 0 {
			fn(TypeCategory(t), t.LegacyName(), legacy)
		}
	}
	for _, s := range a.names.list {
		fn(s.Category, s.Name, s.Events)
	}
}

func (a *Agent) eventsOf(t ringbuf.Type) uint64 {
	switch t {
	case ringbuf.TypeTxBytes, ringbuf.TypeRxBytes:
		return a.sizes[t].Count()
	case ringbuf.TypeXferTime:
		return a.duration.Count()
	case ringbuf.TypeXferPostTime:
		return a.post.Count()
	default:
		return a.counters[t].Events
	}
}

// Series are the events beyond the catalogue, in the order in which they came.
// They are not to be changed.
func (a *Agent) Series() []*Series { return a.names.list }

// Overflow is the events beyond the catalogue and past the limit on names,
// those without a value of their own and those with one.
func (a *Agent) Overflow() (plain, valued *Series) {
	return &a.names.plain, &a.names.valued
}
