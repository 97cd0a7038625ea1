// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package text prepares strings for exporters and CSV files.
package text

import "strings"

// Valid makes a string valid UTF-8. Exporters reject the whole batch if one string isn't.
func Valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

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
