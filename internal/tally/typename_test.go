// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"testing"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestParseTypeNameReversesTypeName(t *testing.T) {
	for _, l := range ringbuf.Layouts() {
		for _, kind := range []ringbuf.Type{0, ringbuf.TypeErrNoTelemetry, ringbuf.TypeEventsDropped, ringbuf.Type(ringbuf.Types), 1000, 1<<32 - 1} {
			if got, known := ParseTypeName(l.TypeName(kind)); got != kind || !known {
				t.Errorf("%s of layout %v is %d, %v", l.TypeName(kind), l, got, known)
			}
		}
	}
	for _, name := range []string{"", "mine", "unknown_event_", "unknown_event_x", "unknown_event_01", "unknown_event_4294967296"} {
		if got, known := ParseTypeName(name); known {
			t.Errorf("%q is type %d", name, got)
		}
	}
}
