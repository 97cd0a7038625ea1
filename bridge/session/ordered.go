// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
)

// Operations lists the operations of a session in the order of their first packets.
// In JSON, it is an object with the operations by name.
type Operations []OperationSummary

// Selections lists the expert selections of a session in the order of their first
// packets. In JSON, it is an object with the counts by name.
type Selections []Selection

// MarshalJSON returns a JSON object in the order of the operations.
func (o Operations) MarshalJSON() ([]byte, error) {
	return marshalObject(o, func(op OperationSummary) (string, any) { return op.Name, op })
}

// UnmarshalJSON parses a JSON object and keeps its order.
func (o *Operations) UnmarshalJSON(b []byte) error {
	*o = nil
	return unmarshalObject(b, func(name string, op OperationSummary) {
		op.Name = name
		*o = append(*o, op)
	})
}

// MarshalJSON returns a JSON object in the order of the selections.
func (s Selections) MarshalJSON() ([]byte, error) {
	return marshalObject(s, func(sel Selection) (string, any) { return sel.Name, sel.Count })
}

// UnmarshalJSON parses a JSON object and keeps its order.
func (s *Selections) UnmarshalJSON(b []byte) error {
	*s = nil
	return unmarshalObject(b, func(name string, count int64) {
		*s = append(*s, Selection{name, count})
	})
}

// marshalObject encodes a slice as an object, in the slice's order. A map would be
// sorted by name, with layer 10 before layer 2.
func marshalObject[T any](items []T, member func(T) (key string, value any)) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, item := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		key, value := member(item)
		if err := e.Encode(key); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := e.Encode(value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// unmarshalObject calls add for each member of an object, in its order.
func unmarshalObject[V any](b []byte, add func(key string, value V)) error {
	d := json.NewDecoder(bytes.NewReader(b))
	open, err := d.Token()
	if err != nil {
		return err
	}
	if open == nil { // null
		return nil
	}
	if open != json.Delim('{') {
		return fmt.Errorf("expected an object, got %v", open)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var value V
		if err := d.Decode(&value); err != nil {
			return err
		}
		add(fmt.Sprint(key), value)
	}
	return nil
}

// notFinite matches the words that Python's json module writes for numbers that aren't
// finite, although they aren't valid JSON. It also matches strings, which may contain
// these words.
var notFinite = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?Infinity|NaN`)

// finite replaces Infinity and NaN with null.
func finite(b []byte) []byte {
	return notFinite.ReplaceAllFunc(b, func(found []byte) []byte {
		if found[0] == '"' {
			return found
		}
		return []byte("null")
	})
}
