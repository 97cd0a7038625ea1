package tally

import (
	"fmt"
	"strings"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
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

// noCategory stands for all numbers that aren't in the catalogue.
const noCategory ringbuf.Category = -1

func knownCategory(c ringbuf.Category) ringbuf.Category {
	if c < 0 || c >= ringbuf.Categories {
		return noCategory
	}
	return c
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
func (n *names) typed(c ringbuf.Category, t ringbuf.Type, l ringbuf.Layout) *Series {
	c = knownCategory(c)
	if s := n.byType[typeKey{category: c, kind: t}]; s != nil {
		return s
	}
	name := t.String()
	if !l.Knows(t) {
		name = fmt.Sprintf("unknown_event_%d", uint32(t))
	}
	s := n.get(seriesKey{category: c, name: name})
	if s != &n.plain && s != &n.valued {
		if n.byType == nil {
			n.byType = make(map[typeKey]*Series)
		}
		n.byType[typeKey{category: c, kind: t}] = s
	}
	return s
}

// named is the series of an event that has a name. The name is bytes of
// another process.
func (n *names) named(c ringbuf.Category, name *ringbuf.Name) *Series {
	c = knownCategory(c)
	if s := n.byKey[seriesKey{category: c, name: string(name.Bytes())}]; s != nil {
		return s
	}
	return n.get(seriesKey{category: c, name: strings.ToValidUTF8(name.String(), "\uFFFD")})
}

// get is the series of a key, a new one if there is none yet and the limit
// allows it.
func (n *names) get(key seriesKey) *Series {
	if s := n.byKey[key]; s != nil {
		return s
	}
	valued := valued(key.category)
	switch {
	case len(n.list) < n.limit:
		if n.byKey == nil {
			n.byKey = make(map[seriesKey]*Series)
		}
		s := &Series{Category: CategoryName(key.category), Name: key.name, Valued: valued, key: key}
		n.byKey[key] = s
		n.list = append(n.list, s)
		return s
	case valued:
		return &n.valued
	default:
		return &n.plain
	}
}

// valued says whether events of a category carry a value that the catalogue
// has no other place for.
func valued(c ringbuf.Category) bool {
	switch c {
	case ringbuf.CategoryConnection, ringbuf.CategoryBackend, ringbuf.CategorySystem, ringbuf.CategoryCustom:
		return true
	default:
		return false
	}
}

var categoryNames = [ringbuf.Categories]string{
	ringbuf.CategoryMemory:      semconv.CategoryMemory,
	ringbuf.CategoryTransfer:    semconv.CategoryTransfer,
	ringbuf.CategoryConnection:  semconv.CategoryConnection,
	ringbuf.CategoryBackend:     semconv.CategoryBackend,
	ringbuf.CategoryError:       semconv.CategoryError,
	ringbuf.CategoryPerformance: semconv.CategoryPerformance,
	ringbuf.CategorySystem:      semconv.CategorySystem,
	ringbuf.CategoryCustom:      semconv.CategoryCustom,
}

// CategoryName is the catalogue's name of a ring's category.
func CategoryName(c ringbuf.Category) string {
	if c < 0 || c >= ringbuf.Categories {
		return semconv.CategoryUnknown
	}
	return categoryNames[c]
}

// TypeCategory is the catalogue's name of the category that a known type
// belongs to.
func TypeCategory(t ringbuf.Type) string {
	if t == ringbuf.TypeEventsDropped {
		return semconv.CategoryTelemetry
	}
	return CategoryName(t.Category())
}
