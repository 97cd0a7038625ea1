// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"encoding/binary"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Stream is a period of an agent's totals that has ended: they were exported under one set
// of attributes, which has changed.
type Stream struct {
	Name       string // of the agent
	Layout     ringbuf.Layout
	Attributes attribute.Set // strings and integers
	Start, End time.Time
	Totals
}

// appendStreams appends everything but the totals of a state to b.
func appendStreams(b []byte, state State) []byte {
	b = appendString(b, state.Name)
	b = appendAttributes(b, state.Attributes)
	b = binary.AppendUvarint(b, uint64(len(state.Ended)))
	for i := range state.Ended {
		s := &state.Ended[i]
		b = appendString(b, s.Name)
		b = append(b, byte(s.Layout))
		b = appendAttributes(b, s.Attributes)
		b = binary.AppendUvarint(b, uint64(s.Start.UnixNano()))
		b = binary.AppendUvarint(b, uint64(s.End.UnixNano()))
		b = appendString(b, string(s.append(nil)))
	}
	return b
}

// The types of an attribute's value.
const (
	stringValue = iota
	integerValue
)

func appendAttributes(b []byte, set attribute.Set) []byte {
	b = binary.AppendUvarint(b, uint64(set.Len()))
	for _, kv := range set.ToSlice() {
		b = appendString(b, string(kv.Key))
		if kv.Value.Type() == attribute.INT64 {
			b = append(b, integerValue)
			b = binary.AppendVarint(b, kv.Value.AsInt64())
		} else {
			b = append(b, stringValue)
			b = appendString(b, kv.Value.AsString())
		}
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// parseStreams decodes the result of appendStreams, which the totals follow.
func (c *Checkpoint) parseStreams(b []byte) error {
	d := streamDecoder{rest: b}
	c.name, c.attributes = d.string(), d.attributes()
	for n := d.uint(); n > 0 && !d.failed; n-- {
		s := Stream{Name: d.string(), Layout: ringbuf.Layout(d.byte()), Attributes: d.attributes()}
		s.Start, s.End = time.Unix(0, int64(d.uint())), time.Unix(0, int64(d.uint()))
		c.ended, c.endedBytes = append(c.ended, s), append(c.endedBytes, []byte(d.string()))
	}
	if d.failed {
		return fmt.Errorf("%w: incomplete streams", ErrInvalid)
	}
	c.totals = d.rest
	return nil
}

// restoreEnded decodes the totals of the ended streams.
func (c *Checkpoint) restoreEnded(decode func([]byte) (Totals, error)) ([]Stream, error) {
	for i := range c.ended {
		var err error
		if c.ended[i].Totals, err = decode(c.endedBytes[i]); err != nil {
			return nil, err
		}
	}
	return c.ended, nil
}

// streamDecoder decodes streams. After a failure, its methods return zero.
type streamDecoder struct {
	rest   []byte
	failed bool
}

func (d *streamDecoder) skip(n int) (skipped []byte) {
	if n <= 0 || n > len(d.rest) {
		d.failed = d.failed || n != 0
		d.rest = d.rest[:0]
		return nil
	}
	skipped, d.rest = d.rest[:n], d.rest[n:]
	return skipped
}

func (d *streamDecoder) uint() uint64 {
	v, n := binary.Uvarint(d.rest)
	d.failed = d.failed || n <= 0
	d.skip(n)
	return v
}

func (d *streamDecoder) int() int64 {
	v, n := binary.Varint(d.rest)
	d.failed = d.failed || n <= 0
	d.skip(n)
	return v
}

func (d *streamDecoder) byte() byte {
	b := d.skip(1)
	if b == nil {
		return 0
	}
	return b[0]
}

func (d *streamDecoder) string() string {
	n := d.uint()
	if n == 0 || d.failed {
		return ""
	}
	if n > uint64(len(d.rest)) {
		d.failed = true
		return ""
	}
	return string(d.skip(int(n)))
}

func (d *streamDecoder) attributes() attribute.Set {
	var list []attribute.KeyValue
	for range d.uint() {
		key := attribute.Key(d.string())
		if d.byte() == integerValue {
			list = append(list, key.Int64(d.int()))
		} else {
			list = append(list, key.String(d.string()))
		}
		if d.failed {
			return attribute.Set{}
		}
	}
	return attribute.NewSet(list...)
}
