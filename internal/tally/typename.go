// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"strconv"
	"strings"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// parseTypeName is the reverse of [ringbuf.Layout.TypeName], for all layouts.
func parseTypeName(name string) (ringbuf.Type, bool) {
	for t := range ringbuf.Type(ringbuf.Types) {
		if t.String() == name {
			return t, true
		}
	}
	n, err := strconv.ParseUint(name[strings.LastIndexByte(name, '_')+1:], 10, 32)
	t := ringbuf.Type(n)
	return t, err == nil && name == ringbuf.V1.TypeName(t) // V1 defines no types, so this is its number
}
