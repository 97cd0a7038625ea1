// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package text prepares strings for exporters and CSV files.
package text

import (
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
)

// Valid makes a string valid UTF-8. Exporters reject the whole batch if one string isn't.
func Valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// Attributes makes the keys and values of attributes valid UTF-8.
func Attributes(all []attribute.KeyValue) []attribute.KeyValue {
	all = slices.Clone(all)
	for i := range all {
		all[i] = attribute.KeyValue{Key: attribute.Key(Valid(string(all[i].Key))), Value: value(all[i].Value)}
	}
	return all
}

func value(v attribute.Value) attribute.Value {
	switch v.Type() {
	case attribute.STRING:
		return attribute.StringValue(Valid(v.AsString()))
	case attribute.STRINGSLICE:
		list := v.AsStringSlice() // a copy
		for i := range list {
			list[i] = Valid(list[i])
		}
		return attribute.StringSliceValue(list)
	case attribute.SLICE:
		list := v.AsSlice() // a copy
		for i := range list {
			list[i] = value(list[i])
		}
		return attribute.SliceValue(list...)
	case attribute.MAP:
		return attribute.MapValue(Attributes(v.AsMap())...)
	default:
		return v
	}
}

// AppendField appends a field of a CSV row to b, quoted if RFC 4180 or Python's csv module
// require it.
func AppendField(b []byte, s string) []byte {
	if !strings.ContainsAny(s, ",\"\r\n") {
		return append(b, s...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(s, `"`, `""`)...)
	return append(b, '"')
}
