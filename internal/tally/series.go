// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"unicode/utf8"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Series counts events beyond the catalog: of a name that a backend or an
// application chose, or of a type that is newer than this package.
type Series struct {
	Category string // lower case; unknown if the ring's isn't in the catalog
	Name     string // valid UTF-8
	// Valued reports whether the values mean something by themselves: those of
	// connection, backend, system and custom events do.
	Valued bool

	number ringbuf.Category // Category as the ring has it, or noCategory
	Events uint64
	Sum    Sum
	last   uint64
}

// Last is the newest value, or the largest int64.
func (s *Series) Last() int64 { return saturate(s.last) }

func (s *Series) record(v uint64) {
	s.Events++
	s.Sum.Add(v)
	s.last = v
}

// The first series of every agent are those past the limit on names.
const (
	overflowPlain  = iota // without a value of their own
	overflowValued        // with one
	reserved              // number of these
)

// seriesKey is what a series is reported under, so that no two of them are
// reported alike. The category is the ring's number, or noCategory.
type seriesKey struct {
	category ringbuf.Category
	name     string
}

// typeKey is an event that has a type. Looking it up needs no string.
type typeKey struct {
	category ringbuf.Category
	kind     ringbuf.Type
}

// names finds the series of one agent, by their index in Totals.series, and
// bounds their number.
type names struct {
	limit  int
	byKey  map[seriesKey]int32
	byType map[typeKey]int32 // a type has one name, so this is no larger
}

func newNames(limit int) names { return names{limit: limit} }

// typedSeries is the series of an event that has a type. A type that the ring's
// layout doesn't know may mean something else there than in a newer layout.
// It allocates only for a new series.
func (a *Agent) typedSeries(c ringbuf.Category, t ringbuf.Type, l ringbuf.Layout) int32 {
	key := typeKey{category: knownCategory(c), kind: t}
	if i, ok := a.names.byType[key]; ok {
		return i
	}
	if a.full() {
		return overflow(c)
	}
	i := a.seriesOf(seriesKey{category: key.category, name: l.TypeName(t)})
	a.names.learn(key, i)
	return i
}

func (n *names) learn(key typeKey, i int32) {
	if n.byType == nil {
		n.byType = make(map[typeKey]int32)
	}
	n.byType[key] = i
}

// restored is seriesOf for a series of a checkpoint, which stores the names of
// types only. Events of these types must find it even if no other fits.
func (a *Agent) restored(key seriesKey) int32 {
	i := a.seriesOf(key)
	if t, ok := ringbuf.ParseTypeName(key.name); ok {
		a.names.learn(typeKey{category: key.category, kind: t}, i)
	}
	return i
}

// namedSeries is the series of an event that has a name. The name is bytes of
// another process. It allocates only for a new series.
func (a *Agent) namedSeries(c ringbuf.Category, name []byte) int32 {
	var valid [len(ringbuf.Name{}) * len(replacement)]byte
	if !utf8.Valid(name) {
		name = appendValid(valid[:0], name)
	}
	c = knownCategory(c)
	if i, ok := a.names.byKey[seriesKey{category: c, name: string(name)}]; ok {
		return i
	}
	if a.full() {
		return overflow(c)
	}
	return a.seriesOf(seriesKey{category: c, name: string(name)})
}

// seriesOf is the series of a key, a new one if there is none yet. The caller
// has checked that another one fits.
func (a *Agent) seriesOf(key seriesKey) int32 {
	if i, ok := a.names.byKey[key]; ok {
		return i
	}
	if a.names.byKey == nil {
		a.names.byKey = make(map[seriesKey]int32)
	}
	i := int32(len(a.series))
	a.series = append(a.series, Series{
		Category: CategoryName(key.category), Name: key.name, Valued: valued(key.category), number: key.category,
	})
	a.names.byKey[key] = i
	return i
}

func (a *Agent) full() bool { return len(a.Series()) >= a.names.limit }

// overflow is the series of events past the limit.
func overflow(c ringbuf.Category) int32 {
	if valued(c) {
		return overflowValued
	}
	return overflowPlain
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
