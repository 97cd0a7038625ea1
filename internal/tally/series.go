package tally

import (
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

// seriesKey tells series apart. The category is the ring's number, so that
// typed events need no string to be found.
type seriesKey struct {
	category ringbuf.Category
	kind     ringbuf.Type
	named    bool
	name     string // of a named event
}

// names holds the series of one agent, and the bound on their number.
type names struct {
	limit  int
	list   []*Series
	byKey  map[seriesKey]*Series
	plain  Series // past the limit, without a value of its own
	valued Series // past the limit, with one
}

func newNames(limit int) names {
	return names{limit: limit, valued: Series{Valued: true}}
}

// typed is the series of an event that has a type.
func (n *names) typed(c ringbuf.Category, t ringbuf.Type) *Series {
	key := seriesKey{category: c, kind: t}
	if s := n.byKey[key]; s != nil {
		return s
	}
	return n.add(key, t.String())
}

// named is the series of an event that has a name. The name is bytes of
// another process.
func (n *names) named(c ringbuf.Category, name *ringbuf.Name) *Series {
	if s := n.byKey[seriesKey{category: c, named: true, name: string(name.Bytes())}]; s != nil {
		return s
	}
	valid := strings.ToValidUTF8(name.String(), "\uFFFD")
	key := seriesKey{category: c, named: true, name: valid}
	if s := n.byKey[key]; s != nil {
		return s
	}
	return n.add(key, valid)
}

func (n *names) add(key seriesKey, name string) *Series {
	category := CategoryName(key.category)
	valued := valued(key.category)
	switch {
	case len(n.list) < n.limit:
		if n.byKey == nil {
			n.byKey = make(map[seriesKey]*Series)
		}
		s := &Series{Category: category, Name: name, Valued: valued, key: key}
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
