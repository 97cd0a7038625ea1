package tally

import "github.com/nixl-otel/nixl-otel/ringbuf"

// groups finds transfers of which events are missing.
//
// An agent of layout V4 pushes the events of a transfer next to each other:
// post time, transfer time, bytes, requests. It pushes them one by one,
// though, and a ring that is full drops the newest, so that any of the four
// may be missing. An event that doesn't continue its group in this order
// begins another; a group that ends without all four was torn.
type groups struct {
	synced bool  // whether a first group was seen from its beginning
	seen   uint8 // events of the open group
	last   int8  // place of the newest event of the open group, 0 to 3
	dir    int8  // direction of the open group's bytes, 0 or 1; -1 before them
	torn   uint64
}

// groupSize is the number of events of a transfer.
const groupSize = 4

// place is where in a transfer's group an event of a type stands, and for
// which direction; -1 is not in a group, or for both directions.
var place = [ringbuf.Types]struct{ at, dir int8 }{
	ringbuf.TypeXferPostTime: {0, -1},
	ringbuf.TypeXferTime:     {1, -1},
	ringbuf.TypeTxBytes:      {2, 0},
	ringbuf.TypeRxBytes:      {2, 1},
	ringbuf.TypeTxRequests:   {3, 0},
	ringbuf.TypeRxRequests:   {3, 1},

	ringbuf.TypeMemoryRegistered:    {-1, -1},
	ringbuf.TypeMemoryDeregistered:  {-1, -1},
	ringbuf.TypeErrNotPosted:        {-1, -1},
	ringbuf.TypeErrInvalidParam:     {-1, -1},
	ringbuf.TypeErrBackend:          {-1, -1},
	ringbuf.TypeErrNotFound:         {-1, -1},
	ringbuf.TypeErrMismatch:         {-1, -1},
	ringbuf.TypeErrNotAllowed:       {-1, -1},
	ringbuf.TypeErrRepostActive:     {-1, -1},
	ringbuf.TypeErrUnknown:          {-1, -1},
	ringbuf.TypeErrNotSupported:     {-1, -1},
	ringbuf.TypeErrRemoteDisconnect: {-1, -1},
	ringbuf.TypeErrCanceled:         {-1, -1},
	ringbuf.TypeErrNoTelemetry:      {-1, -1},
	ringbuf.TypeEventsDropped:       {-1, -1},
}

// add follows one event.
func (g *groups) add(t ringbuf.Type) {
	at, dir := int8(-1), int8(-1)
	if int(t) < ringbuf.Types {
		at, dir = place[t].at, place[t].dir
	}
	if g.seen > 0 && (at <= g.last || at == 3 && g.last == 2 && dir != g.dir) {
		g.end()
	}
	switch {
	case at < 0:
		g.synced = true // between two groups
		return
	case at == 0:
		g.synced = true
	}
	g.seen++
	g.last, g.dir = at, dir
	if g.seen == groupSize {
		g.end()
	}
}

// end closes the open group.
func (g *groups) end() {
	if g.seen < groupSize && g.synced {
		g.torn++
	}
	g.seen, g.last, g.dir = 0, -1, -1
	g.synced = true
}

// lose forgets the open group: what follows isn't the event after the last
// one that was seen, and says nothing about the ring.
func (g *groups) lose() { *g = groups{torn: g.torn} }

// open says whether a group was begun and isn't complete.
func (g *groups) open() bool { return g.seen > 0 }

// whole notes n groups that are known to be whole.
func (g *groups) whole(_ int, n uint64) { g.synced = g.synced || n > 0 }
