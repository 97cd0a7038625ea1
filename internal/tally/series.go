// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"unicode/utf8"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Series counts events that aren't in the catalog: those with a name that a backend or
// an application chose, or with a type that is newer than this package.
type Series struct {
	Number ringbuf.Category // the category's number in the ring, or noCategory
	Name   string           // valid UTF-8
	// Valued reports whether the values are reported, which applies to connection,
	// backend, system and custom events.
	Valued bool

	Total
}

// Unknown reports whether the events have a type, or a category, that isn't in the catalog.
func (s *Series) Unknown() bool { return s.Number == noCategory }

// Category returns the name of the category in lower case; "unknown" if it isn't in the catalog.
func (s *Series) Category() string { return CategoryName(s.Number) }

// The first series of every agent count the events beyond the limit on names.
const (
	overflowPlain  = iota // events whose values aren't reported
	overflowValued        // events whose values are reported
	reserved              // number of overflow series
)

// seriesKey holds the attributes of a series, so that they are unique. The category is
// its number in the ring, or noCategory.
type seriesKey struct {
	category ringbuf.Category
	name     string
}

// typeKey identifies the series of an event with a type. Unlike a seriesKey, it needs no
// string.
type typeKey struct {
	category ringbuf.Category
	kind     ringbuf.Type
}

// typedSeries returns the series of an event with a type. A type that the ring's layout
// doesn't define may have another meaning than in a newer layout. It allocates only for
// a new series.
func (a *Agent) typedSeries(c ringbuf.Category, t ringbuf.Type, l ringbuf.Layout) int32 {
	key := typeKey{category: knownCategory(c), kind: t}
	if i, ok := a.byType[key]; ok {
		return i
	}
	if a.full() {
		return overflow(c)
	}
	i := a.seriesOf(seriesKey{category: key.category, name: l.TypeName(t)})
	a.addType(key, i)
	return i
}

func (a *Agent) addType(key typeKey, i int32) {
	if a.byType == nil {
		a.byType = make(map[typeKey]int32)
	}
	a.byType[key] = i
}

// restored is seriesOf for a series of a checkpoint, which stores only the names of
// types. Later events of these types must find it even if the limit is reached. Series of types
// have the names of V2 and V3: V4 has no category that a type doesn't belong to.
func (a *Agent) restored(key seriesKey) int32 {
	i := a.seriesOf(key)
	if t, ok := parseTypeName(key.name); ok && key.name == ringbuf.V3.TypeName(t) {
		a.addType(typeKey{category: key.category, kind: t}, i)
	}
	return i
}

// namedSeries returns the series of an event with a name. The name may be any bytes. It
// allocates only for a new series.
func (a *Agent) namedSeries(c ringbuf.Category, name []byte) int32 {
	var valid [len(ringbuf.Name{}) * len(replacement)]byte
	if !utf8.Valid(name) {
		name = appendValid(valid[:0], name)
	}
	c = knownCategory(c)
	if i, ok := a.byKey[seriesKey{category: c, name: string(name)}]; ok {
		return i
	}
	if a.full() {
		return overflow(c)
	}
	return a.seriesOf(seriesKey{category: c, name: string(name)})
}

// seriesOf returns the series of a key, and adds it if necessary. The caller must have
// checked the limit.
func (a *Agent) seriesOf(key seriesKey) int32 {
	if i, ok := a.byKey[key]; ok {
		return i
	}
	if a.byKey == nil {
		a.byKey = make(map[seriesKey]int32)
	}
	i := int32(len(a.series))
	a.series = append(a.series, Series{Number: key.category, Name: key.name, Valued: valued(key.category)})
	a.byKey[key] = i
	return i
}

func (a *Agent) full() bool { return len(a.Series()) >= a.shape.maxNames }

// overflow returns the series of events beyond the limit.
func overflow(c ringbuf.Category) int32 {
	if valued(c) {
		return overflowValued
	}
	return overflowPlain
}

const replacement = "\uFFFD"

// appendValid is bytes.ToValidUTF8 without allocations.
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
