// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Event is an event to be formatted.
type Event struct {
	Ring     string // path of the ring
	Micros   uint64 // since the epoch
	Read     bool   // Micros is when the event was read, because the ring has no timestamps
	Category ringbuf.Category
	Metric   string // the category as in nixl.event.category
	Name     string
	Value    uint64
}

// New returns the event of a ring that was read at now.
func New(ring string, l ringbuf.Layout, e *ringbuf.Event, now time.Time) Event {
	shown := Event{
		Ring: ring, Micros: e.TimestampMicros,
		Category: e.Category, Metric: tally.CategoryName(e.Category), Name: nameIn(l, e), Value: e.Value,
	}
	if !e.Named && l.Knows(e.Type) && l != ringbuf.V2 { // slots of V2 contain the category
		shown.Metric = tally.TypeCategory(e.Type)
	}
	if l != ringbuf.V1 {
		shown.Micros, shown.Read = uint64(max(0, now.UnixMicro())), true
	}
	return shown
}

// nameIn returns an event's name in a layout. Older layouts don't define the newest type.
func nameIn(l ringbuf.Layout, e *ringbuf.Event) string {
	if e.Named {
		return e.Name.String()
	}
	return l.TypeName(e.Type)
}

// Time returns when the event was recorded or read, in local time.
func (e *Event) Time() time.Time { return time.UnixMicro(int64(min(e.Micros, math.MaxInt64))) }

// AppendBlock appends the event as NIXL's guide shows it:
//
//	=== NIXL Telemetry Event ===
//	Timestamp: 2025-01-15 14:30:25.123456
//	Category: TRANSFER
//	Event: agent_tx_bytes
//	Value: 1048576
//	===========================
//
// and an empty line. The time is local. Names with control characters are quoted.
func AppendBlock(b []byte, e *Event) []byte {
	b = append(b, "=== NIXL Telemetry Event ===\nTimestamp: "...)
	b = e.Time().AppendFormat(b, "2006-01-02 15:04:05.000000")
	b = append(b, "\nCategory: "...)
	b = append(b, e.Category.String()...)
	b = append(b, "\nEvent: "...)
	b = append(b, units.Printable(e.Name)...)
	b = append(b, "\nValue: "...)
	b = strconv.AppendUint(b, e.Value, 10)
	return append(b, "\n===========================\n\n"...)
}

// AppendLine appends the event as one line with aligned columns.
func AppendLine(b []byte, e *Event) []byte { return append(appendColumns(b, e), '\n') }

// AppendRingLine is like [AppendLine], but adds the path of the ring.
func AppendRingLine(b []byte, e *Event) []byte {
	b = append(appendColumns(b, e), "  "...)
	b = append(b, units.Printable(e.Ring)...)
	return append(b, '\n')
}

// appendColumns appends columns that are wide enough for the longest category, name and
// value, so that all lines are aligned.
func appendColumns(b []byte, e *Event) []byte {
	b = e.Time().AppendFormat(b, "2006-01-02 15:04:05.000000")
	return fmt.Appendf(b, "  %-11s  %-31s  %20d", e.Metric, units.Printable(e.Name), e.Value)
}

// jsonEvent is an event as JSON. The field names are those of the CSV and are stable. The
// category is that of the metrics.
type jsonEvent struct {
	Ring     string `json:"ring"`
	Micros   uint64 `json:"timestamp_us"`
	Read     bool   `json:"time_of_reading,omitempty"`
	Category string `json:"category"`
	Name     string `json:"event_name"`
	Value    uint64 `json:"value"`
}

// AppendJSON appends the event as a JSON line.
func AppendJSON(b []byte, e *Event) []byte {
	line, err := json.Marshal(jsonEvent{
		Ring: units.Text(e.Ring), Micros: e.Micros, Read: e.Read,
		Category: e.Metric, Name: e.Name, Value: e.Value,
	})
	if err != nil {
		panic(err) // can't happen for strings and numbers
	}
	return append(append(b, line...), '\n')
}

// CSVHeader is the first line of the CSV.
const CSVHeader = sink.CSVHeader

// AppendCSV appends the event as a CSV row.
func AppendCSV(b []byte, e *Event) []byte {
	return sink.AppendCSV(b, &sink.Event{
		Time: e.Time(), Category: e.Category, Name: strings.ToValidUTF8(e.Name, "\uFFFD"), Value: e.Value,
	})
}

// Formats returns the names of the formats.
func Formats() []string { return []string{"text", "line", "json", "csv"} }

// ParseFormat returns the function that appends an event in a format.
func ParseFormat(name string) (func([]byte, *Event) []byte, error) {
	switch name {
	case "text":
		return AppendBlock, nil
	case "line":
		return AppendLine, nil
	case "json":
		return AppendJSON, nil
	case "csv":
		return AppendCSV, nil
	}
	return nil, fmt.Errorf("unknown format %q: must be one of %s", name, strings.Join(Formats(), ", "))
}
