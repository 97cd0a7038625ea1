// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"encoding/binary"
	"fmt"
)

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
	e.uint(uint64(len(list)))
	for _, v := range list {
		e.uint(v)
	}
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
