// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import "github.com/nixl-otel/nixl-otel/ringbuf"

// groups finds transfers of which events are missing.
//
// An agent of layout V4 pushes the events of a transfer next to each other:
// post time, transfer time, bytes, requests. It pushes them one by one,
// though, and a ring that is full drops the newest, so that any of the four
// may be missing. An event that doesn't continue its group in this order
// begins another; a group that ends without all four was torn.
//
// An agent may have been configured to omit some of the four
// (NIXL_TELEMETRY_ENABLED_METRICS, on NIXL's main since July 2026), of both
// directions or of one. So a group is torn only if it lacks an event of a type
// that the agent was seen to write for the group's direction. A group without
// bytes and requests may be of either direction, and is torn only if it lacks
// an event in both: otherwise it is a whole one of a direction whose bytes and
// requests are omitted, or not known yet.
//
// Two cuts can look like one transfer, the head of the first and the tail of
// the second, so at least as many groups are torn as are counted.
type groups struct {
	synced  bool      // whether a group was seen from its beginning
	seen    places    // of the open group; none if no group is open
	dir     int8      // of the open group, once it has bytes
	written [2]places // by direction: what this run of the agent has written

	post, took, bytes uint64 // values of the open group, if seen has them

	classes *classes // for the times of groups that aren't whole; may be nil
}

// groupSize is the number of events of a transfer.
const groupSize = 4

// places are the events of a group, a bit each: post time, transfer time,
// bytes, requests.
type places uint8

const (
	atPostTime places = 1 << iota
	atTime
	atBytes
	atRequests

	noPlace   places = 0
	allPlaces        = atPostTime | atTime | atBytes | atRequests
)

// place is where in a transfer's group an event of a type stands, and for
// which direction: 0 or 1, or -1 for both. Other types have no place.
var place = [ringbuf.Types]struct {
	at  places
	dir int8
}{
	ringbuf.TypeXferPostTime: {atPostTime, -1},
	ringbuf.TypeXferTime:     {atTime, -1},
	ringbuf.TypeTxBytes:      {atBytes, 0},
	ringbuf.TypeRxBytes:      {atBytes, 1},
	ringbuf.TypeTxRequests:   {atRequests, 0},
	ringbuf.TypeRxRequests:   {atRequests, 1},
}

// add follows one event. It returns the number of torn groups that the event
// ends, at most two: the open one and its own. It also reports whether the event
// completes a whole group; post, took, bytes and dir are those of that group then. An
// event of an unknown type may belong to the group or not, so it isn't added.
func (g *groups) add(t ringbuf.Type, v uint64) (torn uint64, whole bool) {
	p := place[t]
	if p.at <= g.seen || p.at == atRequests && g.seen&atBytes != 0 && p.dir != g.dir {
		torn = g.end()
	}
	if p.at <= atPostTime {
		g.synced = true // at a beginning, or between two groups
	}
	switch p.at {
	case noPlace:
		return torn, false
	case atPostTime:
		g.post = v
	case atTime:
		g.took = v
	case atBytes:
		g.bytes = v
	}
	g.seen |= p.at
	if p.dir >= 0 {
		g.dir = p.dir
		g.written[p.dir] |= p.at
	} else {
		g.written[0] |= p.at
		g.written[1] |= p.at
	}
	if p.at == atRequests {
		whole = g.seen == allPlaces
		torn += g.end()
	}
	return torn, whole
}

// whole notes n groups that are known to be whole.
func (g *groups) whole(dir int, n uint64) {
	if n > 0 {
		g.written[dir] = allPlaces
		g.written[1-dir] |= atPostTime | atTime
		g.synced = true
	}
}

// end closes the open group, if there is one, and returns 1 if it was torn.
func (g *groups) end() (torn uint64) {
	if g.seen == 0 {
		return 0
	}
	lacks := g.lacks(0) && g.lacks(1)
	if g.seen&(atBytes|atRequests) != 0 {
		lacks = g.lacks(int(g.dir))
	}
	if lacks && g.synced {
		torn = 1
	}
	g.close(true)
	return torn
}

// lacks reports whether the open group lacks an event that the agent writes
// for transfers of a direction.
func (g *groups) lacks(dir int) bool { return g.written[dir]&^g.seen != 0 }

// lose forgets the open group: what follows isn't the event after the last
// one that was seen.
func (g *groups) lose() { g.close(false) }

// restart forgets the run of the agent that has ended.
func (g *groups) restart() {
	g.close(false)
	*g = groups{classes: g.classes}
}

// close gives the open group up.
func (g *groups) close(synced bool) {
	if g.classes != nil && g.seen != allPlaces {
		g.classes.incomplete(g)
	}
	g.seen, g.synced = 0, synced
}

// open reports whether a group was begun and isn't complete.
func (g *groups) open() bool { return g.seen != 0 }
