// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// checkpointVersion is the first byte of the encoded totals. It changes with the
// format.
const checkpointVersion = 6

// Reasons why totals can't be restored.
var (
	// ErrCheckpoint reports bytes that aren't encoded totals.
	ErrCheckpoint = errors.New("invalid checkpoint")
	// ErrShape reports totals with another histogram configuration.
	ErrShape = errors.New("checkpoint has another histogram configuration")
)

// AppendTotals appends the encoded totals to b, for [Agent.RestoreTotals]. They don't
// include the fill of the ring, which describes the current state.
func (a *Agent) AppendTotals(b []byte) []byte {
	e := encoder(b)
	e.uint(checkpointVersion)
	e.uint(a.shape.hash())
	for t := range a.counters {
		e.total(a.counters[t])
	}
	for _, h := range a.list() {
		e.histogram(h.Histogram)
	}
	e.sum(a.otherErrors)
	e.memory(&a.memory)
	e.series(&a.series[overflowPlain])
	e.series(&a.series[overflowValued])
	e.uint(uint64(len(a.Series())))
	for i := range a.Series() {
		s := &a.Series()[i]
		e.key(seriesKey{s.number, s.Name})
		e.series(s)
	}
	e.groups(&a.groups)
	for _, n := range a.health.stored() {
		e.uint(*n)
	}
	return e
}

// RestoreTotals restores the totals of a new agent. It accepts untrusted bytes. The
// error wraps [ErrCheckpoint] or [ErrShape]; after an error, the agent must not be
// used.
func (a *Agent) RestoreTotals(b []byte) error {
	d := &decoder{rest: b}
	if v := d.uint(); v != checkpointVersion {
		return fmt.Errorf("%w: version %d", ErrCheckpoint, v)
	}
	if d.uint() != a.shape.hash() {
		return ErrShape
	}
	for t := range a.counters {
		a.counters[t] = d.total()
	}
	for _, h := range a.list() {
		d.histogram(h.Histogram)
	}
	a.otherErrors = d.sum()
	d.memory(a)
	d.series(&a.series[overflowPlain])
	d.series(&a.series[overflowValued])
	d.names(a)
	d.groups(&a.groups)
	for _, n := range a.health.stored() {
		*n = d.uint()
	}
	return d.end()
}

func (e *encoder) key(k seriesKey) {
	e.uint(uint64(uint32(k.category)))
	e.string(k.name)
}

func (d *decoder) key() seriesKey {
	return seriesKey{
		category: ringbuf.Category(uint32(d.uint())),
		name:     d.string(),
	}
}

func (e *encoder) total(t Total) {
	e.uint(t.Events)
	e.sum(t.Sum)
	e.uint(t.last)
}

func (d *decoder) total() Total { return Total{Events: d.uint(), Sum: d.sum(), last: d.uint()} }

func (e *encoder) series(s *Series) { e.total(Total{Events: s.Events, Sum: s.Sum, last: s.last}) }

// series adds the stored counts to s.
func (d *decoder) series(s *Series) {
	t := d.total()
	s.Events += t.Events
	s.Sum.plus(t.Sum)
	s.last = t.last
}

// names restores series up to the limit, which may have been higher when they were
// stored. It adds the rest to the overflow series, so no event is lost.
func (d *decoder) names(a *Agent) {
	seen := make(map[seriesKey]bool)
	for range d.count(len(d.rest)) { // each takes some bytes
		key := d.key()
		if seen[key] || key.category != knownCategory(key.category) || !utf8.ValidString(key.name) {
			d.fail("name %q", key.name)
			return
		}
		seen[key] = true
		i := overflow(key.category)
		if !a.full() {
			i = a.restored(key)
		}
		d.series(&a.series[i])
	}
}

func (e *encoder) memory(m *memory) {
	e.bool(m.known)
	e.sum(m.registeredBefore)
	e.sum(m.deregisteredBefore)
}

func (d *decoder) memory(a *Agent) {
	m := memory{known: d.bool(), registeredBefore: d.sum(), deregisteredBefore: d.sum()}
	if a.Registered().Sum.less(m.registeredBefore) < 0 || a.Deregistered().Sum.less(m.deregisteredBefore) < 0 {
		d.fail("the memory at the agent's last start exceeds the total")
		return
	}
	a.memory = m
	a.checkMemory()
}

func (e *encoder) groups(g *groups) {
	e.bool(g.synced)
	e.uint(uint64(g.seen))
	var dir int8 // only if the open group has bytes; otherwise g.dir is of an earlier group
	if g.seen&atBytes != 0 {
		dir = g.dir
	}
	e.uint(uint64(dir))
	e.uint(uint64(g.written[0]))
	e.uint(uint64(g.written[1]))
	var post, took, bytes uint64 // likewise
	if g.seen&atPostTime != 0 {
		post = g.post
	}
	if g.seen&atTime != 0 {
		took = g.took
	}
	if g.seen&atBytes != 0 {
		bytes = g.bytes
	}
	e.uint(post)
	e.uint(took)
	e.uint(bytes)
}

func (d *decoder) groups(g *groups) {
	g.synced = d.bool()
	g.seen = places(d.below(int(atRequests)))
	g.dir = int8(d.below(len(g.written)))
	g.written[0] = places(d.count(int(allPlaces)))
	g.written[1] = places(d.count(int(allPlaces)))
	g.post, g.took, g.bytes = d.uint(), d.uint(), d.uint()
}

func (e *encoder) histogram(h *Histogram) {
	for _, v := range []uint64{h.min, h.max, h.last} {
		e.uint(v)
	}
	e.sum(h.sum)
	e.uints(h.counts())
	if h.exp != nil {
		b := h.exp.buckets()
		e.uint(uint64(b.Scale - minScale))
		e.uint(b.Zero)
		e.uint(uint64(uint32(b.Offset)))
		e.uints(b.Counts)
	}
}

func (d *decoder) histogram(h *Histogram) {
	for _, v := range []*uint64{&h.min, &h.max, &h.last} {
		*v = d.uint()
	}
	h.sum = d.sum()
	if counts := d.uints(len(h.counts())); len(counts) == len(h.counts()) {
		copy(h.counts(), counts)
	} else {
		d.fail("%d buckets, not %d", len(counts), len(h.counts()))
	}
	if h.exp != nil {
		b := Buckets{Scale: int32(d.below(maxScale-minScale+1)) + minScale, Zero: d.uint(), Offset: int32(uint32(d.uint()))}
		b.Counts = d.uints(h.exp.maxSize)
		if n := len(b.Counts); n > 0 && (b.middle(0) == 0 || math.IsInf(b.middle(n-1), 0)) {
			d.fail("%d buckets from %d on at scale %d", n, b.Offset, b.Scale)
			return
		}
		h.exp.restore(b)
	}
	h.setQuick()
}

// encoder encodes a checkpoint. Numbers are varints, because most are small.
type encoder []byte

func (e *encoder) uint(v uint64) { *e = binary.AppendUvarint(*e, v) }

func (e *encoder) int(v int64) { *e = binary.AppendVarint(*e, v) }

func (e *encoder) sum(s Sum) {
	e.uint(s.Hi)
	e.uint(s.Lo)
}

func (e *encoder) bool(v bool) {
	var bit uint64
	if v {
		bit = 1
	}
	e.uint(bit)
}

func (e *encoder) string(s string) {
	e.uint(uint64(len(s)))
	*e = append(*e, s...)
}

func (e *encoder) uints(list []uint64) {
	b := binary.AppendUvarint(*e, uint64(len(list)))
	for _, v := range list {
		b = binary.AppendUvarint(b, v)
	}
	*e = b
}

// decoder decodes a checkpoint. After the first error, its methods return zero.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrCheckpoint, fmt.Sprintf(format, args...))
	}
	d.rest = nil
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail("it is too short")
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail("it is too short")
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// below decodes a number that must be less than limit.
func (d *decoder) below(limit int) int {
	v := d.uint()
	if v >= uint64(limit) {
		d.fail("%d is not below %d", v, limit)
		return 0
	}
	return int(v)
}

// count decodes a number of at most limit.
func (d *decoder) count(limit int) int { return d.below(limit + 1) }

func (d *decoder) sum() Sum { return Sum{Hi: d.uint(), Lo: d.uint()} }

func (d *decoder) bool() bool { return d.below(2) == 1 }

func (d *decoder) string() string {
	n := d.uint()
	if n > uint64(len(d.rest)) {
		d.fail("a string of %d bytes, but %d bytes are left", n, len(d.rest))
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}

// uints decodes a list of at most limit numbers.
func (d *decoder) uints(limit int) []uint64 {
	list := make([]uint64, d.count(limit))
	for i := range list {
		list[i] = d.uint()
	}
	return list
}

// end returns the first error, which may be that bytes are left over.
func (d *decoder) end() error {
	if d.err == nil && len(d.rest) > 0 {
		d.fail("%d bytes are left over", len(d.rest))
	}
	return d.err
}
