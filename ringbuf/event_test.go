// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringbuf

import (
	"strings"
	"testing"
)

func TestTypesHaveNIXLsNamesAndCategories(t *testing.T) {
	for _, c := range []struct {
		typ          Type
		name, legacy string
		category     Category
		isError      bool
	}{
		{0, "agent_tx_bytes", "agent_tx_bytes", CategoryTransfer, false},
		{3, "agent_rx_requests_num", "agent_rx_requests_num", CategoryTransfer, false},
		{5, "agent_memory_deregistered", "agent_memory_deregistered", CategoryMemory, false},
		{7, "agent_xfer_post_time", "agent_xfer_post_time", CategoryPerformance, false},
		{8, "agent_err_not_posted", "NIXL_ERR_NOT_POSTED", CategoryError, true},
		{19, "agent_err_no_telemetry", "NIXL_ERR_NO_TELEMETRY", CategoryError, true},
		{20, "agent_telemetry_events_dropped", "agent_telemetry_events_dropped", CategorySystem, false},
		{21, "unknown_event_21", "unknown_event_21", -1, false},
		{1<<32 - 1, "unknown_event_4294967295", "unknown_event_4294967295", -1, false},
	} {
		if got := c.typ.String(); got != c.name {
			t.Errorf("type %d: name %q, want %q", c.typ, got, c.name)
		}
		if got := c.typ.LegacyName(); got != c.legacy {
			t.Errorf("type %d: legacy name %q, want %q", c.typ, got, c.legacy)
		}
		if got := c.typ.Category(); got != c.category {
			t.Errorf("type %d: category %v, want %v", c.typ, got, c.category)
		}
		if got := c.typ.IsError(); got != c.isError {
			t.Errorf("type %d: error %v, want %v", c.typ, got, c.isError)
		}
	}
}

func TestCategoriesHaveNIXLsNames(t *testing.T) {
	want := "MEMORY TRANSFER CONNECTION BACKEND ERROR PERFORMANCE SYSTEM CUSTOM UNKNOWN UNKNOWN"
	var got []string
	for c := range Category(Categories + 1) {
		got = append(got, c.String())
	}
	got = append(got, Category(-1).String())
	if s := strings.Join(got, " "); s != want {
		t.Errorf("categories are %s, want %s", s, want)
	}
}

func TestNamesEndAtTheFirstNUL(t *testing.T) {
	full := strings.Repeat("x", 32)
	for _, c := range []struct {
		what string
		name Name
		want string
	}{
		{"empty", MakeName(""), ""},
		{"short", MakeName("abc"), "abc"},
		{"31 bytes fit", MakeName(full[:31]), full[:31]},
		{"32 bytes are cut", MakeName(full), full[:31]},
		{"no NUL", Name([]byte(full)), full},
		{"bytes after the NUL are stale", Name(append([]byte("abc\x00def"), make([]byte, 25)...)), "abc"},
		{"not UTF-8", Name(append([]byte("\xff\xfe\x80"), make([]byte, 29)...)), "\xff\xfe\x80"},
		{"a NUL first", Name(append([]byte("\x00abc"), make([]byte, 28)...)), ""},
	} {
		if got := c.name.String(); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
		if got := string(c.name.Bytes()); got != c.want {
			t.Errorf("%s: bytes are %q, want %q", c.what, got, c.want)
		}
	}
}
