// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"encoding/binary"
	"errors"
	"testing"
	"unsafe"
)

// The wanted sizes and offsets come from compiling each NIXL release. The Go structs
// must match on every platform.
func TestStructsMatchTheCPlusPlusStructs(t *testing.T) {
	var (
		v1 TimedEvent
		v2 CategorizedEvent
		v4 TypedEvent
	)
	for _, c := range []struct {
		what      string
		got, want uintptr
	}{
		{"sizeof(v1 event)", unsafe.Sizeof(v1), 56},
		{"v1 timestamp_us", unsafe.Offsetof(v1.TimestampMicros), 0},
		{"v1 category", unsafe.Offsetof(v1.Category), 8},
		{"v1 name", unsafe.Offsetof(v1.Name), 12},
		{"v1 value", unsafe.Offsetof(v1.Value), 48},

		{"sizeof(v2 event)", unsafe.Sizeof(v2), 16},
		{"v2 category", unsafe.Offsetof(v2.Category), 0},
		{"v2 type", unsafe.Offsetof(v2.Type), 4},
		{"v2 value", unsafe.Offsetof(v2.Value), 8},

		{"sizeof(v4 event)", unsafe.Sizeof(v4), 16},
		{"v4 type", unsafe.Offsetof(v4.Type), 0},
		{"v4 value", unsafe.Offsetof(v4.Value), 8},
	} {
		if c.got != c.want {
			t.Errorf("%s is %d, want %d", c.what, c.got, c.want)
		}
	}
}

func TestDecodeHeaderUsesTheOffsetsOfTheStruct(t *testing.T) {
	b := make([]byte, HeaderSize)
	for i := range b {
		b[i] = byte(i * 7)
	}
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }
	b[16], b[17], b[18], b[19] = 4, 0, 0, 0
	want := Header{
		WritePos: at(0), ReadPos: at(8), Version: 4, ExpectedVersion: int32(binary.LittleEndian.Uint32(b[20:])),
		Capacity: at(24), Mask: at(32),
	}
	if got := decodeHeader(b); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestLayoutsMatchTheirStructsAndVersions(t *testing.T) {
	sizes := []int{56, 16, 16, 16}
	for i, l := range Layouts() {
		if l.EventSize() != sizes[i] || l.Version() != int32(i+1) {
			t.Errorf("%v: events of %d bytes, version %d; want %d and %d", l, l.EventSize(), l.Version(), sizes[i], i+1)
		}
		if got, err := ParseLayout(l.String()); err != nil || got != l {
			t.Errorf("ParseLayout(%q) = %v, %v", l, got, err)
		}
	}
	if _, err := ParseLayout("v5"); err == nil {
		t.Error("ParseLayout accepts v5")
	}
	if got := Layout(9).String(); got != "layout(9)" {
		t.Errorf("an unknown layout prints as %q", got)
	}
}

// The limit applies even if the file is as large as the header claims.
func TestCapacityIsLimited(t *testing.T) {
	for _, l := range []Layout{V1, V4} {
		for _, c := range []struct {
			capacity uint64
			ok       bool
		}{{MaxCapacity, true}, {MaxCapacity * 2, false}, {1 << 40, false}} {
			_, _, err := identify(header(l, c.capacity), l.FileSize(c.capacity))
			if c.ok && err != nil || !c.ok && !errors.Is(err, ErrInvalid) {
				t.Errorf("%v, capacity %d: error %v", l, c.capacity, err)
			}
		}
	}
}

func TestModesAreReadAsTheyAreWritten(t *testing.T) {
	for text, m := range map[string]Mode{"consume": Consume, "observe": Observe} {
		var got Mode
		if err := got.UnmarshalText([]byte(text)); err != nil || got != m || m.String() != text {
			t.Errorf("%s is read as %v, %v", text, got, err)
		}
	}
	if new(Mode).UnmarshalText([]byte("peek")) == nil {
		t.Error("peek is accepted")
	}
}

func TestTypeNameIgnoresLaterLayouts(t *testing.T) {
	for _, tt := range []struct {
		layout Layout
		kind   Type
		want   string
	}{
		{V2, TypeTxBytes, "agent_tx_bytes"},
		{V2, TypeEventsDropped, "unknown_event_20"},
		{V3, TypeErrNoTelemetry, "agent_err_no_telemetry"},
		{V3, TypeEventsDropped, "unknown_event_20"},
		{V4, TypeEventsDropped, "agent_telemetry_events_dropped"},
		{V4, TypeEventsDropped + 1, "unknown_event_21"},
	} {
		if got := tt.layout.TypeName(tt.kind); got != tt.want {
			t.Errorf("%v of %v is %q, want %q", tt.kind, tt.layout, got, tt.want)
		}
	}
}
