// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"encoding/binary"
	"math/bits"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// noSeries marks a spelling that stands for a type.
const noSeries = -1

// spelling is the meaning of a category and a name in a ring: a type of the catalog or
// a series.
type spelling struct {
	kind   ringbuf.Type
	failed bool  // whether it is an error that isn't in the catalog
	series int32 // index in Totals.series; noSeries if it stands for kind
}

// spellings caches the meanings of names. It has one entry per hash, so its size is
// fixed.
type spellings [1 << spellingBits]struct {
	mark  uint64
	words nameWords
	spelling
}

// spellingBits gives about twice as many entries as an agent has names.
const spellingBits = 6

// nameWords is the 32 bytes of a name as words, which fit in registers.
type nameWords struct{ a, b, c, d uint64 }

func wordsOf(name *ringbuf.Name) nameWords {
	le := binary.LittleEndian
	return nameWords{le.Uint64(name[0:]), le.Uint64(name[8:]), le.Uint64(name[16:]), le.Uint64(name[24:])}
}

func (w nameWords) name() (n ringbuf.Name) {
	for i, word := range [...]uint64{w.a, w.b, w.c, w.d} {
		binary.LittleEndian.PutUint64(n[8*i:], word)
	}
	return n
}

// mark encodes a category as a number that is never 0, the mark of an empty entry.
func mark(c ringbuf.Category) uint64 { return 1<<32 | uint64(uint32(c)) }

// hash gives each of NIXL's own names a different entry. The factor was found by search,
// and a test checks it.
func (w nameWords) hash(mark uint64) uint64 {
	const factor = 0x7039C277FAAB36C3
	h := w.a ^ bits.RotateLeft64(w.b, 13) ^ bits.RotateLeft64(w.c, 29) ^ bits.RotateLeft64(w.d, 47)
	return (h + mark) * factor >> (64 - spellingBits)
}

// find returns the meaning of a category and a name. It allocates only for a new
// series.
func (a *Agent) find(c ringbuf.Category, name *ringbuf.Name) *spelling {
	words := wordsOf(name) // read once: another process may change the name
	at := &a.spellings[words.hash(mark(c))]
	if at.mark != mark(c) || at.words != words {
		a.work += lookupWork
		at.mark, at.words = mark(c), words
		at.spelling = a.lookUp(c, words.name())
	}
	return &at.spelling
}

// lookUp is find without the cache.
func (a *Agent) lookUp(c ringbuf.Category, name ringbuf.Name) spelling {
	b := name.Bytes()
	if s, ok := spelledTypes[seriesKey{c, string(b)}]; ok {
		return s
	}
	return spelling{series: a.namedSeries(c, b), failed: c == ringbuf.CategoryError && !typeNames[string(b)]}
}

// spelledTypes are the types in layout V1. Errors are accepted under the names of later
// layouts, too.
var spelledTypes = func() map[seriesKey]spelling {
	m := make(map[seriesKey]spelling)
	for t := range ringbuf.TypeEventsDropped {
		m[seriesKey{t.Category(), t.LegacyName()}] = spelling{kind: t, series: noSeries}
		m[seriesKey{t.Category(), t.String()}] = spelling{kind: t, series: noSeries}
	}
	return m
}()

// typeNames are the names of spelledTypes in any category.
var typeNames = func() map[string]bool {
	m := make(map[string]bool)
	for key := range spelledTypes {
		m[key.name] = true
	}
	return m
}()
