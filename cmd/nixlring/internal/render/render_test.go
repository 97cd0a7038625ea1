// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

var names = []string{
	"agent_tx_bytes", "", `a "quoted", name`, "two\nlines", "\x1b[2J", "\xff\xfe", "日本語", "unknown_event_21",
}

func TestNamesAreEscapedInAllFormats(t *testing.T) {
	for _, name := range names {
		e := Event{Ring: "/tmp/a", Micros: math.MaxUint64, Category: -1, Name: name, Value: math.MaxUint64}
		block := string(AppendBlock(nil, &e))
		if strings.Count(block, "\n") != 7 || strings.ContainsRune(block, 0x1b) || !utf8.ValidString(block) {
			t.Errorf("%q: %q", name, block)
		}
		var got map[string]any
		if err := json.Unmarshal(AppendJSON(nil, &e), &got); err != nil || got["event_name"] != strings.ToValidUTF8(name, "\uFFFD\uFFFD") && got["event_name"] != name {
			t.Errorf("%q: %v, %v", name, got, err)
		}
		rows, err := csv.NewReader(strings.NewReader(string(AppendCSV(nil, &e)))).ReadAll()
		if err != nil || len(rows) != 1 || rows[0][2] != strings.ToValidUTF8(name, "\uFFFD") || rows[0][3] != "18446744073709551615" {
			t.Errorf("%q: %q, %v", name, rows, err)
		}
	}
}

func TestTimeIsTheTimestampOrElseTheTimeOfReading(t *testing.T) {
	now := time.UnixMicro(1_736_951_425_123_456)
	e := ringbuf.NewEvent(ringbuf.TypeTxBytes, 5)
	e.TimestampMicros = 77
	if got := New("r", ringbuf.V1, &e, now); got.Micros != 77 || got.Read {
		t.Errorf("v1: %+v", got)
	}
	e.TimestampMicros = 0
	if got := New("r", ringbuf.V4, &e, now); got.Micros != 1_736_951_425_123_456 || !got.Read || !got.Time().Equal(now) {
		t.Errorf("v4: %+v", got)
	}
}

// The metrics and JSON have a category for events about telemetry itself; NIXL's readers
// don't.
func TestFilterAndJSONUseTheCategoriesOfTheMetrics(t *testing.T) {
	dropped, sent := ringbuf.NewEvent(ringbuf.TypeEventsDropped, 5), ringbuf.NewEvent(ringbuf.TypeTxBytes, 5)
	strange := ringbuf.NewEvent(ringbuf.TypeTxBytes, 5)
	strange.Category = ringbuf.CategoryError // as in the slot
	for _, tt := range []struct {
		layout ringbuf.Layout
		event  ringbuf.Event
		want   string
	}{
		{ringbuf.V4, dropped, "telemetry"},
		{ringbuf.V2, dropped, "system"},
		{ringbuf.V3, sent, "transfer"},
		{ringbuf.V2, strange, "error"},
		{ringbuf.V1, ringbuf.NewNamedEvent(ringbuf.CategoryCustom, "x", 1), "custom"},
		{ringbuf.V1, ringbuf.NewNamedEvent(77, "x", 1), "unknown"},
	} {
		e := New("r", tt.layout, &tt.event, time.Now())
		f, err := NewFilter([]string{tt.want}, nil)
		if err != nil || !f.Match(&e) || e.Metric != tt.want || !strings.Contains(string(AppendJSON(nil, &e)), `"category":"`+tt.want+`"`) {
			t.Errorf("%v: %+v, %v; want %s", tt.layout, e, err, tt.want)
		}
	}
}

func TestLineHasAlignedColumns(t *testing.T) {
	e := ringbuf.NewEvent(ringbuf.TypeTxBytes, 1<<20)
	at := time.Date(2025, 1, 15, 14, 30, 25, 123_456_000, time.Local)
	shown := New("/tmp/a\n", ringbuf.V4, &e, at)
	const want = "2025-01-15 14:30:25.123456  transfer     agent_tx_bytes                                1048576"
	if got := string(AppendLine(nil, &shown)); got != want+"\n" {
		t.Errorf("%q", got)
	}
	if got := string(AppendRingLine(nil, &shown)); got != want+`  "/tmp/a\n"`+"\n" {
		t.Errorf("%q", got)
	}
}

func TestFilterSelectsByCategoryAndName(t *testing.T) {
	events := []Event{
		{Category: ringbuf.CategoryTransfer, Name: "agent_tx_bytes"},
		{Category: ringbuf.CategoryError, Name: "agent_err_backend"},
		{Category: 99, Name: "a.b/c"},
	}
	for _, tt := range []struct{ categories, names, want []string }{
		{nil, nil, []string{"agent_tx_bytes", "agent_err_backend", "a.b/c"}},
		{[]string{"error", " Transfer"}, nil, []string{"agent_tx_bytes", "agent_err_backend"}},
		{[]string{"unknown"}, nil, []string{"a.b/c"}},
		{nil, []string{"agent_*"}, []string{"agent_tx_bytes", "agent_err_backend"}},
		{nil, []string{"a.b?c", "nothing"}, []string{"a.b/c"}},
		{nil, []string{"a?b/c", "agent"}, []string{"a.b/c"}},
		{nil, []string{"aXb/c"}, nil},
		{[]string{"error"}, []string{"*bytes"}, nil},
	} {
		f, err := NewFilter(tt.categories, tt.names)
		must.OK(t, err)
		var got []string
		for i := range events {
			if f.Match(&events[i]) {
				got = append(got, events[i].Name)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%+v: %s", tt, diff)
		}
	}
	if _, err := NewFilter([]string{"luck"}, nil); err == nil {
		t.Error("an unknown category was accepted")
	}
}

func TestParseFormatAcceptsAllFormats(t *testing.T) {
	for _, name := range Formats() {
		if f, err := ParseFormat(name); err != nil || f == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ParseFormat("xml"); err == nil || !strings.Contains(err.Error(), "text, line, json, csv") {
		t.Error(err)
	}
}
