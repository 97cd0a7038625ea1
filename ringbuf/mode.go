// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import "fmt"

// Mode is what a reader does to its ring.
type Mode uint8

const (
	// Consume takes events out: the ring's agent gets the room back. It needs
	// write permission, and one consumer at a time.
	Consume Mode = iota
	// Observe looks only. The ring is opened read-only and stays as it is.
	Observe
)

// String is consume or observe.
func (m Mode) String() string {
	if m == Observe {
		return "observe"
	}
	return "consume"
}

// ParseMode is the reverse of [Mode.String].
func ParseMode(s string) (Mode, error) {
	switch s {
	case Consume.String():
		return Consume, nil
	case Observe.String():
		return Observe, nil
	}
	return 0, fmt.Errorf("unknown mode %q: it is one of consume, observe", s)
}

// UnmarshalText is [ParseMode], for configuration files.
func (m *Mode) UnmarshalText(text []byte) (err error) {
	*m, err = ParseMode(string(text))
	return err
}

// MarshalText is [Mode.String].
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }
