// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"encoding/binary"
	"reflect"
)

// A checkpoint is stored for each flush of an agent, and nearly all of it is numbers. So an entry is stored as its values,
// in the order of the fields, and numbers as varints: a third of the bytes of JSON, in half the time. Whoever changes a
// field changes the version.

// decode sets a value to what appendValue has appended, and reports whether it is valid.
func decode(raw []byte, v reflect.Value) bool {
	d := decoder{raw: raw}
	d.value(v)
	return !d.wrong && len(d.raw) == 0
}

// appendValue appends a value. A slice or a string follows its length.
func appendValue(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case reflect.Int8, reflect.Int32, reflect.Int64:
		return binary.AppendVarint(b, v.Int())
	case reflect.String:
		return append(binary.AppendUvarint(b, uint64(v.Len())), v.String()...)
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, 0)
		}
		return appendValue(append(b, 1), v.Elem())
	case reflect.Struct:
		for i := range v.NumField() { //nolint:modernize // Fields also returns the names, which takes longer
			b = appendValue(b, v.Field(i))
		}
		return b
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice {
			b = binary.AppendUvarint(b, uint64(v.Len()))
		}
		for i := range v.Len() {
			b = appendValue(b, v.Index(i))
		}
		return b
	default:
		return binary.AppendUvarint(b, v.Uint())
	}
}

// decoder decodes what appendValue has appended, or anything else.
type decoder struct {
	raw   []byte
	wrong bool
}

func (d *decoder) fail() { d.raw, d.wrong = nil, true }

// number returns the next number, which is at most a limit.
func (d *decoder) number(limit uint64) uint64 {
	n, size := binary.Uvarint(d.raw)
	if size <= 0 || n > limit {
		d.fail()
		return 0
	}
	d.raw = d.raw[size:]
	return n
}

// length returns the next length. Each element takes at least a byte.
func (d *decoder) length() int {
	n := d.number(uint64(len(d.raw)))
	if n > uint64(len(d.raw)) {
		d.fail()
		return 0
	}
	return int(n)
}

// text returns the next string.
func (d *decoder) text() string {
	n := d.length()
	if d.wrong {
		return ""
	}
	s := string(d.raw[:n])
	d.raw = d.raw[n:]
	return s
}

func (d *decoder) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(d.number(1) == 1)
	case reflect.Int8, reflect.Int32, reflect.Int64:
		n, size := binary.Varint(d.raw)
		if size <= 0 || v.OverflowInt(n) {
			d.fail()
			return
		}
		d.raw = d.raw[size:]
		v.SetInt(n)
	case reflect.String:
		v.SetString(d.text())
	case reflect.Pointer:
		if d.number(1) == 1 {
			v.Set(reflect.New(v.Type().Elem()))
			d.value(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() { //nolint:modernize // Fields also returns the names, which takes longer
			d.value(v.Field(i))
		}
	case reflect.Slice:
		if n := d.length(); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
		}
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			d.value(v.Index(i))
		}
	default:
		v.SetUint(d.number(1<<v.Type().Bits() - 1))
	}
}
