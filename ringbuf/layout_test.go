package ringbuf

import (
	"errors"
	"testing"
	"unsafe"
)

// The sizes and offsets that the compiler of each NIXL release printed for its
// structs; the Go twins have to have them too, on every platform.
func TestStructsMatchTheirCTwins(t *testing.T) {
	var (
		h  header
		v1 TimedEvent
		v2 CategorizedEvent
		n  NamedEvent
		v4 TypedEvent
	)
	for _, c := range []struct {
		what      string
		got, want uintptr
	}{
		{"sizeof(header)", unsafe.Sizeof(h), 40},
		{"header.write_pos", unsafe.Offsetof(h.writePos), 0},
		{"header.read_pos", unsafe.Offsetof(h.readPos), 8},
		{"header.version", unsafe.Offsetof(h.version), 16},
		{"header.expected_version", unsafe.Offsetof(h.expectedVersion), 20},
		{"header.capacity", unsafe.Offsetof(h.capacity), 24},
		{"header.mask", unsafe.Offsetof(h.mask), 32},

		{"sizeof(v1 event)", unsafe.Sizeof(v1), 56},
		{"v1 timestamp_us", unsafe.Offsetof(v1.TimestampMicros), 0},
		{"v1 category", unsafe.Offsetof(v1.Category), 8},
		{"v1 name", unsafe.Offsetof(v1.Name), 12},
		{"v1 value", unsafe.Offsetof(v1.Value), 48},

		{"sizeof(v2 event)", unsafe.Sizeof(v2), 16},
		{"v2 category", unsafe.Offsetof(v2.Category), 0},
		{"v2 type", unsafe.Offsetof(v2.Type), 4},
		{"v2 value", unsafe.Offsetof(v2.Value), 8},

		{"sizeof(v2-named event)", unsafe.Sizeof(n), 48},
		{"v2-named category", unsafe.Offsetof(n.Category), 0},
		{"v2-named name", unsafe.Offsetof(n.Name), 4},
		{"v2-named value", unsafe.Offsetof(n.Value), 40},

		{"sizeof(v4 event)", unsafe.Sizeof(v4), 16},
		{"v4 type", unsafe.Offsetof(v4.Type), 0},
		{"v4 value", unsafe.Offsetof(v4.Value), 8},
	} {
		if c.got != c.want {
			t.Errorf("%s is %d, want %d", c.what, c.got, c.want)
		}
	}
}

// decodeHeader has offsets of its own; they have to be those of the struct.
func TestDecodeHeaderReadsTheStruct(t *testing.T) {
	h := header{writePos: 1 << 40, readPos: 2 << 40, version: -3, expectedVersion: -4, capacity: 5 << 40, mask: 6 << 40}
	got := decodeHeader(unsafe.Slice((*byte)(unsafe.Pointer(&h)), headerSize))
	want := Header{WritePos: 1 << 40, ReadPos: 2 << 40, Version: -3, ExpectedVersion: -4, Capacity: 5 << 40, Mask: 6 << 40}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestLayoutFacts(t *testing.T) {
	sizes := map[Layout]uintptr{
		V1: unsafe.Sizeof(TimedEvent{}), V2: unsafe.Sizeof(CategorizedEvent{}), V2Named: unsafe.Sizeof(NamedEvent{}),
		V3: unsafe.Sizeof(TypedEvent{}), V4: unsafe.Sizeof(TypedEvent{}),
	}
	versions := map[Layout]int32{V1: 1, V2: 2, V2Named: 2, V3: 3, V4: 4}
	for _, l := range Layouts() {
		if uintptr(l.EventSize()) != sizes[l] {
			t.Errorf("%v: event size %d, its struct has %d", l, l.EventSize(), sizes[l])
		}
		if l.Version() != versions[l] {
			t.Errorf("%v: version %d, want %d", l, l.Version(), versions[l])
		}
		if got, err := ParseLayout(l.String()); err != nil || got != l {
			t.Errorf("ParseLayout(%q) = %v, %v", l, got, err)
		}
	}
	if _, err := ParseLayout("v5"); err == nil {
		t.Error("ParseLayout takes v5")
	}
	if got := Layout(9).String(); got != "layout(9)" {
		t.Errorf("an unknown layout prints as %q", got)
	}
}

func TestLayoutKnowsItsTypes(t *testing.T) {
	for _, c := range []struct {
		layout Layout
		last   Type // the last type that it knows
		none   bool
	}{
		{layout: V1, none: true},
		{layout: V2, last: TypeErrNoTelemetry},
		{layout: V2Named, none: true},
		{layout: V3, last: TypeErrNoTelemetry},
		{layout: V4, last: TypeEventsDropped},
	} {
		for typ := range Type(30) {
			if got, want := c.layout.Knows(typ), !c.none && typ <= c.last; got != want {
				t.Errorf("%v knows type %d: %v, want %v", c.layout, typ, got, want)
			}
		}
	}
}

// A header can be right in all but its size. What a ring may take of the
// address space is bounded, also where the file is as large as it says.
func TestCapacityIsBounded(t *testing.T) {
	for _, c := range []struct {
		capacity uint64
		ok       bool
	}{{MaxCapacity, true}, {MaxCapacity * 2, false}, {1 << 40, false}} {
		h := Header{Version: 4, ExpectedVersion: 4, Capacity: c.capacity, Mask: c.capacity - 1}
		_, err := h.layout(headerSize + int64(c.capacity)*16)
		if c.ok && err != nil || !c.ok && !errors.Is(err, ErrInvalid) {
			t.Errorf("capacity %d: error %v", c.capacity, err)
		}
	}
}

func TestModes(t *testing.T) {
	for _, m := range []Mode{Consume, Observe} {
		if got, err := ParseMode(m.String()); err != nil || got != m {
			t.Errorf("ParseMode(%q) = %v, %v", m, got, err)
		}
	}
	if _, err := ParseMode("peek"); err == nil {
		t.Error("ParseMode takes peek")
	}
}

// The next smaller ring, found by looking at them all.
func TestSmaller(t *testing.T) {
	for _, of := range Layouts() {
		for capacity := uint64(2); capacity <= MaxCapacity; capacity *= 2 {
			var want int64
			for _, l := range Layouts() {
				for c := uint64(1); l.fileSize(c) < of.fileSize(capacity); c *= 2 {
					want = max(want, l.fileSize(c))
				}
			}
			if got := smaller(of.fileSize(capacity)); got != want {
				t.Errorf("smaller than %v with %d slots: %d, want %d", of, capacity, got, want)
			}
		}
	}
}

// A number that only a later layout has a name for is a number.
func TestTypeName(t *testing.T) {
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
