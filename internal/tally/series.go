package tally

import (
	"unicode/utf8"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Series is what is known of one event beyond the catalogue: a name that a
// backend or an application made up, or a type that is newer than this
// package.
type Series struct {
	Category string // lower case; unknown where the ring's isn't in the catalogue
	Name     string // valid UTF-8
	// Valued says whether the values mean something by themselves: those of
	// connection, backend, system and custom events do.
	Valued bool

	Events uint64
	Sum    Sum
	last   uint64
	key    seriesKey
}

// Last is the newest value, or the largest int64.
func (s *Series) Last() int64 { return saturate(s.last) }

func (s *Series) record(v uint64) {
	s.Events++
	s.Sum.Add(v)
	s.last = v
}

// seriesKey is what a series is reported under, so that no two of them are
// reported alike. The category is the ring's number, or noCategory.
type seriesKey struct {
	category ringbuf.Category
	name     string
}

// typeKey is an event that has a type. It needs no string to be looked for.
type typeKey struct {
	category ringbuf.Category
	kind     ringbuf.Type
}

// names holds the series of one agent, and the bound on their number.
type names struct {
	limit  int
	list   []*Series
	byKey  map[seriesKey]*Series
	byType map[typeKey]*Series // a type has one name, so that this is no larger
	plain  Series              // past the limit, without a value of its own
	valued Series              // past the limit, with one
}

func newNames(limit int) names {
	return names{limit: limit, valued: Series{Valued: true}}
}

// typed is the series of an event that has a type. One that the ring's layout
// doesn't know may mean another thing there than what a newer layout calls it.
// It allocates only for a new series.
func (n *names) typed(c ringbuf.Category, t ringbuf.Type, l ringbuf.Layout) *Series {
	key := typeKey{category: knownCategory(c), kind: t}
	if s := n.byType[key]; s != nil {
		return s
	}
	if n.full() {
		return n.overflow(c)
	}
	s := n.get(seriesKey{category: key.category, name: l.TypeName(t)})
	n.learn(key, s)
	return s
}

func (n *names) learn(key typeKey, s *Series) {
	if n.byType == nil {
		n.byType = make(map[typeKey]*Series)
	}
	n.byType[key] = s
}

// restore is get for a series of a checkpoint, which has the names of types only.
// Events of these types are to find it, though there may be no room for another.
func (n *names) restore(key seriesKey) *Series {
	s := n.get(key)
	if t, ok := ringbuf.ParseTypeName(key.name); ok {
		n.learn(typeKey{category: key.category, kind: t}, s)
	}
	return s
}

// named is the series of an event that has a name. The name is bytes of
// another process. It allocates only for a new series.
func (n *names) named(c ringbuf.Category, name []byte) *Series {
	var valid [len(ringbuf.Name{}) * len(replacement)]byte
	if !utf8.Valid(name) {
		name = appendValid(valid[:0], name)
	}
	c = knownCategory(c)
	if s := n.byKey[seriesKey{category: c, name: string(name)}]; s != nil {
		return s
	}
	if n.full() {
		return n.overflow(c)
	}
	return n.get(seriesKey{category: c, name: string(name)})
}

// get is the series of a key, a new one if there is none yet. The caller has
// seen that there is room.
func (n *names) get(key seriesKey) *Series {
	if s := n.byKey[key]; s != nil {
		return s
	}
	if n.byKey == nil {
		n.byKey = make(map[seriesKey]*Series)
	}
	s := &Series{Category: CategoryName(key.category), Name: key.name, Valued: valued(key.category), key: key}
	n.byKey[key] = s
	n.list = append(n.list, s)
	return s
}

func (n *names) full() bool { return len(n.list) >= n.limit }

func (n *names) overflow(c ringbuf.Category) *Series {
	if valued(c) {
		return &n.valued
	}
	return &n.plain
}

const replacement = "\uFFFD"

// appendValid is bytes.ToValidUTF8 without its allocations.
func appendValid(dst, name []byte) []byte {
	invalid := false
	for len(name) > 0 {
		r, size := utf8.DecodeRune(name)
		switch {
		case r != utf8.RuneError || size > 1:
			dst = append(dst, name[:size]...)
			invalid = false
		case !invalid:
			dst = append(dst, replacement...)
			invalid = true
		}
		name = name[size:]
	}
	return dst
}
