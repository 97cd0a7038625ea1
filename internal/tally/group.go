// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import "github.com/nixl-otel/nixl-otel/ringbuf"

// groups detects transfers with missing events.
//
// An agent of layout V4 pushes the events of a transfer next to each other: post time,
// transfer time, bytes, requests. It pushes them one by one, and drops the newest event
// when the ring is full, so any of the four may be missing. An event that doesn't
// continue the current group in this order begins a new group. A group that ends
// without all four events is torn.
//
// An agent may be configured to omit some of the four events, for both directions or
// for one (NIXL_TELEMETRY_ENABLED_METRICS, on NIXL's main since July 2026). So a group
// is torn only if it lacks an event of a type that the agent has written for the
// group's direction. A group without bytes and requests may have either direction. It
// is torn only if it lacks an event for both; otherwise its direction may be one whose
// bytes and requests are omitted or haven't occurred yet.
//
// The head of one torn group and the tail of another can look like one whole group, so
// the count is a lower bound. This is also the stored form.
type groups struct {
	Synced  bool      // whether the next group is read from its beginning
	Seen    places    // events of the open group; none if no group is open
	Dir     int8      // direction of the open group, once it has bytes
	Written [2]places // by direction: events that this run of the agent has written

	Post, Took, Bytes uint64 // values of the open group, if Seen has them
}

// groupSize is the number of events of a transfer.
const groupSize = 4

// places is a set of events of a group, with a bit for each: post time, transfer
// time, bytes, requests.
type places uint8

const (
	atPostTime places = 1 << iota
	atTime
	atBytes
	atRequests

	noPlace   places = 0
	allPlaces        = atPostTime | atTime | atBytes | atRequests
)

// place is the place of a type in a group, and its direction: 0 or 1, or -1 for both.
// Other types have no place.
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

// add processes one event. It returns the number of torn groups that the event ends,
// at most two: the open group and its own. It also reports whether the event completes
// a whole group; then Post, Took, Bytes and Dir belong to that group. Events of unknown
// types aren't added, because they may belong to the group or not.
func (g *groups) add(t ringbuf.Type, v uint64) (torn uint64, whole bool) {
	p := place[t]
	if p.at <= g.Seen || p.at == atRequests && g.Seen&atBytes != 0 && p.dir != g.Dir {
		torn = g.end()
	}
	if p.at <= atPostTime {
		g.Synced = true // the beginning of a group, or between two groups
	}
	switch p.at {
	case noPlace:
		return torn, false
	case atPostTime:
		g.Post = v
	case atTime:
		g.Took = v
	case atBytes:
		g.Bytes = v
	}
	g.Seen |= p.at
	if p.dir >= 0 {
		g.Dir = p.dir
		g.Written[p.dir] |= p.at
	} else {
		g.Written[0] |= p.at
		g.Written[1] |= p.at
	}
	if p.at == atRequests {
		whole = g.Seen == allPlaces
		torn += g.end()
	}
	return torn, whole
}

// whole records n groups that are known to be whole.
func (g *groups) whole(dir int, n uint64) {
	if n > 0 {
		g.Written[dir] = allPlaces
		g.Written[1-dir] |= atPostTime | atTime
		g.Synced = true
	}
}

// end closes the open group, if there is one, and returns 1 if it was torn.
func (g *groups) end() (torn uint64) {
	if g.Seen == 0 {
		return 0
	}
	lacks := g.lacks(0) && g.lacks(1)
	if g.Seen&(atBytes|atRequests) != 0 {
		lacks = g.lacks(int(g.Dir))
	}
	if lacks && g.Synced {
		torn = 1
	}
	g.close(true)
	return torn
}

// lacks reports whether the open group lacks an event that the agent writes for
// transfers in a direction.
func (g *groups) lacks(dir int) bool { return g.Written[dir]&^g.Seen != 0 }

// skip discards the open group because events were missed.
func (g *groups) skip() { g.close(false) }

// restart discards the state of the agent's previous run.
func (g *groups) restart() {
	*g = groups{}
}

// close ends the open group.
func (g *groups) close(synced bool) {
	g.Seen, g.Synced = 0, synced
}

// open reports whether a group is incomplete.
func (g *groups) open() bool { return g.Seen != 0 }
