// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"fmt"
	"unsafe"
)

// Batch is a copy of consecutive events of a ring. It is valid only during the callback
// that receives it.
//
// Exactly one of the typed views matches the layout; the others return nil. A
// view copies nothing, while [Batch.Event] decodes a copy.
type Batch struct {
	layout Layout
	slots  []byte // whole slots
}

// MakeBatch returns a batch of events outside of a ring. The error wraps [ErrNoType] if
// there is an event that the layout can't contain.
func MakeBatch(l Layout, events []Event) (Batch, error) {
	b := Batch{l, make([]byte, len(events)*l.EventSize())}
	for i := range events {
		if err := b.put(i, &events[i]); err != nil {
			return Batch{}, err
		}
	}
	return b, nil
}

// Layout returns the layout of the batch's slots.
func (b Batch) Layout() Layout { return b.layout }

// Len returns the number of events.
func (b Batch) Len() int { return len(b.slots) / b.layout.EventSize() }

// Typed returns the events of a ring of layout [V3] or [V4].
func (b Batch) Typed() []TypedEvent { return view[TypedEvent](b, b.layout >= V3) }

// Categorized returns the events of a ring of layout [V2].
func (b Batch) Categorized() []CategorizedEvent { return view[CategorizedEvent](b, b.layout == V2) }

// Timed returns the events of a ring of layout [V1].
func (b Batch) Timed() []TimedEvent { return view[TimedEvent](b, b.layout == V1) }

// view returns slots as the Go equivalent of their C++ struct, or nil if they are not of its
// layout. Headers and slots have sizes that are multiples of 8, so slots are aligned.
func view[T any](b Batch, matches bool) []T {
	if !matches {
		return nil
	}
	var event T
	n := len(b.slots) / int(unsafe.Sizeof(event))
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b.slots))), n)
}

// Quads returns events as groups of four, in place, without an incomplete last
// group. Loops over groups need no bounds check per event.
func Quads(events []TypedEvent) [][4]TypedEvent {
	if len(events) < 4 {
		return nil
	}
	return unsafe.Slice((*[4]TypedEvent)(unsafe.Pointer(unsafe.SliceData(events))), len(events)/4)
}

// Event returns a copy of event i of the batch.
func (b Batch) Event(i int) Event {
	switch b.layout {
	case V1:
		s := &b.Timed()[i]
		return Event{TimestampMicros: s.TimestampMicros, Category: s.Category, Named: true, Name: s.Name, Value: s.Value}
	case V2:
		s := &b.Categorized()[i]
		return Event{Category: s.Category, Type: s.Type, Value: s.Value}
	default:
		s := &b.Typed()[i]
		e := Event{Category: -1, Type: s.Type, Value: s.Value}
		if b.layout.Knows(s.Type) {
			e.Category = s.Type.Category()
		}
		return e
	}
}

// put encodes e into slot i. For an event without a name, a layout with names
// stores the name of the type. A layout with types rejects events without a type.
func (b Batch) put(i int, e *Event) error {
	if e.Named && !b.layout.Named() {
		return fmt.Errorf("%w (%v)", ErrNoType, b.layout)
	}
	switch b.layout {
	case V1:
		b.Timed()[i] = TimedEvent{TimestampMicros: e.TimestampMicros, Category: e.Category, Name: e.ringName(), Value: e.Value}
	case V2:
		b.Categorized()[i] = CategorizedEvent{Category: e.Category, Type: e.Type, Value: e.Value}
	default:
		b.Typed()[i] = TypedEvent{Type: e.Type, Value: e.Value}
	}
	return nil
}

func (e *Event) ringName() Name {
	if e.Named {
		return e.Name
	}
	return MakeName(e.Type.LegacyName())
}
