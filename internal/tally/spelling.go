package tally

import (
	"encoding/binary"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// spelling is what a category and a name on a ring stand for: a type of the
// catalogue, or a series of its own.
type spelling struct {
	kind   ringbuf.Type
	legacy bool    // whether kind has another name since
	series *Series // nil where kind holds
}

// spellings remembers what names stand for. It is a cache with one place per
// hash, so that its size is fixed, whatever a ring says.
type spellings [spellingPlaces]struct {
	category ringbuf.Category
	name     ringbuf.Name
	valid    bool
	spelling
}

const spellingPlaces = 64 // twice as many as an agent uses

// find is what the event stands for. It allocates only for a new series.
func (s *spellings) find(c ringbuf.Category, name *ringbuf.Name, n *names) spelling {
	at := &s[hash(c, name)%spellingPlaces]
	if !at.valid || at.category != c || at.name != *name {
		at.category, at.name, at.valid = c, *name, true
		at.spelling = spell(c, name, n)
	}
	return at.spelling
}

// hash spreads NIXL's own names over the places of the cache.
func hash(c ringbuf.Category, name *ringbuf.Name) uint64 {
	const odd = 0x9E3779B97F4A7C15 // 2^64 over the golden ratio
	le := binary.LittleEndian
	h := le.Uint64(name[0:]) * odd
	h = (h ^ le.Uint64(name[8:])) * odd
	h = (h ^ le.Uint64(name[16:])) * odd
	h = (h ^ le.Uint64(name[24:]) ^ uint64(uint32(c))) * odd //nolint:gosec // any bits will do
	return h >> 58
}

// spell looks a name up without the cache.
func spell(c ringbuf.Category, name *ringbuf.Name, n *names) spelling {
	if s, ok := spelledTypes[seriesKey{category: c, name: string(name.Bytes())}]; ok {
		return s
	}
	return spelling{series: n.named(c, name)}
}

// spelledTypes are the types that layouts with names know. Errors are found by
// both their names, as V2Named was written between the two.
var spelledTypes = func() map[seriesKey]spelling {
	m := make(map[seriesKey]spelling)
	for t := range ringbuf.TypeEventsDropped {
		now, then := t.String(), t.LegacyName()
		m[seriesKey{category: t.Category(), name: then}] = spelling{kind: t, legacy: now != then}
		m[seriesKey{category: t.Category(), name: now}] = spelling{kind: t}
	}
	return m
}()
