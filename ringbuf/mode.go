// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import "fmt"

// Mode determines whether a reader consumes events.
type Mode uint8

const (
	// Consume removes events from the ring, so the agent can reuse their slots.
	// It needs write permission. A ring can have one consumer at a time.
	Consume Mode = iota
	// Observe opens the ring read-only and leaves it unchanged.
	Observe
)

// String returns "consume" or "observe".
func (m Mode) String() string {
	if m == Observe {
		return "observe"
	}
	return "consume"
}

// UnmarshalText implements [encoding.TextUnmarshaler]: it is the reverse of [Mode.String].
func (m *Mode) UnmarshalText(text []byte) error {
	switch string(text) {
	case Consume.String():
		*m = Consume
	case Observe.String():
		*m = Observe
	default:
		return fmt.Errorf("unknown mode %q: use consume or observe", text)
	}
	return nil
}

// MarshalText implements [encoding.TextMarshaler] with [Mode.String].
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }
