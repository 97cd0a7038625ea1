// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"errors"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
)

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
			_, _, err := identify(ringtest.NewHeader(l.Version(), c.capacity).Bytes(), l.FileSize(c.capacity))
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
		if again, err := m.MarshalText(); err != nil || string(again) != text {
			t.Errorf("%s is written as %s, %v", text, again, err)
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
