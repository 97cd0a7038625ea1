// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"path/filepath"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// decoder decodes frames. It validates everything, because a recording is untrusted input.
type decoder struct {
	rest  []byte
	err   error
	began bool
	at    time.Duration
	rings []ringState
	kinds []kind // of the current frame
	stamp uint64
	batch []ringbuf.Event
}

type ringState struct {
	name   string
	layout ringbuf.Layout
}

func (d *decoder) begin(frame []byte) {
	d.rest, d.kinds, d.stamp = frame, d.kinds[:0], 0
}

// record reads one record.
func (d *decoder) record(rec *Record) error {
	op := Op(d.byte())
	micros := d.uint()
	if most := uint64(math.MaxInt64-d.at) / uint64(time.Microsecond); micros > most {
		d.fail("time overflow")
		micros = 0
	}
	d.at += time.Duration(micros) * time.Microsecond
	*rec = Record{Op: op, At: d.at}
	if d.began == (op == OpBegin) && d.err == nil {
		d.fail("the first record must be the beginning, and no other record may be")
	}
	switch op {
	case OpBegin:
		d.began = true
		rec.Start, rec.Directory = time.UnixMicro(d.int()), d.string()
	case OpOpen:
		d.open(rec)
	case OpEvents:
		d.ring(rec)
		d.events(rec)
	case OpMissed, OpEnded:
		d.ring(rec)
		rec.Why = d.string()
	case OpEnd:
	default:
		d.fail("unknown operation %d", op)
	}
	return d.err
}

// open reads an OpOpen record, whose ring may be new.
func (d *decoder) open(rec *Record) {
	n, name := d.below(maxRings), d.string()
	layout, capacity := ringbuf.Layout(d.byte()), d.uint()
	switch {
	case d.err != nil:
		return
	case n > len(d.rings):
		d.fail("got ring %d, want at most %d", n, len(d.rings))
	case n < len(d.rings) && d.rings[n].name != name:
		d.fail("ring %d has two names, %q and %q", n, d.rings[n].name, name)
	case !filepath.IsLocal(name) || name == "." || strings.ContainsRune(name, 0):
		d.fail("ring %q isn't in the directory", name)
	case layout < ringbuf.V1 || layout > ringbuf.V5:
		d.fail("unknown layout %d", layout)
	case capacity < 2 || capacity > ringbuf.MaxCapacity || bits.OnesCount64(capacity) != 1:
		d.fail("invalid capacity %d", capacity)
	case n == len(d.rings):
		d.rings = append(d.rings, ringState{name: name})
	}
	if d.err == nil {
		d.rings[n].layout = layout
		rec.Ring, rec.Name, rec.Layout, rec.Capacity = n, name, layout, int(capacity)
	}
}

func (d *decoder) ring(rec *Record) {
	rec.Ring = d.below(len(d.rings))
	if d.err == nil {
		rec.Name, rec.Layout = d.rings[rec.Ring].name, d.rings[rec.Ring].layout
	}
}

func (d *decoder) events(rec *Record) {
	const least = 2 // minimum size of an event in bytes
	n := d.below(len(d.rest)/least + 1)
	d.batch = d.batch[:0]
	for range n {
		k := d.kind()
		if d.err != nil {
			return
		}
		e := k.event()
		if e.Named != rec.Layout.Named() {
			d.fail("invalid event for layout %v", rec.Layout)
			return
		}
		e.Value = d.uint()
		if rec.Layout == ringbuf.V1 {
			d.stamp += uint64(d.int())
			e.TimestampMicros = d.stamp
		}
		d.batch = append(d.batch, e)
	}
	rec.Events = d.batch
}

// kind reads the kind of an event: its number and, if the number is new, its definition.
func (d *decoder) kind() kind {
	n := d.below(len(d.kinds) + 1)
	if d.err != nil {
		return kind{}
	}
	if n < len(d.kinds) {
		return d.kinds[n]
	}
	var k kind
	if c := d.int(); c == int64(int32(c)) {
		k.category = ringbuf.Category(c)
	} else {
		d.fail("invalid category %d", c)
	}
	switch d.byte() {
	case 0:
		if t := d.uint(); t <= math.MaxUint32 {
			k.typ = ringbuf.Type(t)
		} else {
			d.fail("invalid type %d", t)
		}
	case 1:
		k.named = true
		copy(k.name[:], d.bytes(len(k.name)))
	default:
		d.fail("event has neither a type nor a name")
	}
	d.kinds = append(d.kinds, k)
	return k
}

var errEnds = errors.New("frame ends within a record")

// fail stores the first error. Afterwards, all values read are zero.
func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
	d.rest = nil
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail("%w", errEnds)
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail("%w", errEnds)
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// below reads a number that must be less than limit.
func (d *decoder) below(limit int) int {
	v := d.uint()
	if d.err == nil && v >= uint64(limit) {
		d.fail("got %d, want less than %d", v, limit)
		return 0
	}
	return int(v)
}

func (d *decoder) bytes(n int) []byte {
	if n > len(d.rest) {
		d.fail("%w", errEnds)
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (d *decoder) string() string { return string(d.bytes(d.below(maxString + 1))) }
