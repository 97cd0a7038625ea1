// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// event is an event to be printed.
type event struct {
	sink.Event        // its time is when the event was recorded, or else read
	ring       string // path
	read       bool   // the ring has no timestamps
	metric     string // the category of the metrics
}

// newEvent returns the event of a ring that was read at now.
func newEvent(ring string, l ringbuf.Layout, e *ringbuf.Event, now time.Time) event {
	shown := event{Event: sink.NewEvent("", l, e, now), ring: ring, read: l != ringbuf.V1, metric: tally.CategoryName(e.Category)}
	if l.Knows(e.Type) && l != ringbuf.V2 { // slots of V2 contain the category
		shown.metric = tally.TypeCategory(e.Type)
	}
	return shown
}

// Formats returns the names of the formats.
func Formats() []string { return []string{"text", "json", "csv"} }

// header is what a format prints before the first event.
func header(format string) string {
	if format == "csv" {
		return sink.CSVHeader
	}
	return ""
}

// add appends the event in a format.
func (e *event) add(b []byte, format string) []byte {
	switch format {
	case "json":
		return e.addJSON(b)
	case "csv":
		return sink.AppendCSV(b, &e.Event)
	default:
		return e.addBlock(b)
	}
}

// addBlock appends the event as NIXL's guide shows it:
//
//	=== NIXL Telemetry Event ===
//	Timestamp: 2025-01-15 14:30:25.123456
//	Category: TRANSFER
//	Event: agent_tx_bytes
//	Value: 1048576
//	===========================
//
// and an empty line. The time is local.
func (e *event) addBlock(b []byte) []byte {
	return fmt.Appendf(b, "=== NIXL Telemetry Event ===\nTimestamp: %s\nCategory: %v\nEvent: %s\nValue: %d\n===========================\n\n",
		e.Time.Local().Format("2006-01-02 15:04:05.000000"), e.Category, units.Printable(e.Name), e.Value)
}

// addJSON appends the event as a line. The field names are those of the CSV and are stable.
func (e *event) addJSON(b []byte) []byte {
	line, err := json.Marshal(struct {
		Ring     string `json:"ring"`
		Micros   int64  `json:"timestamp_us"`
		Read     bool   `json:"time_of_reading,omitempty"`
		Category string `json:"category"` // of the metrics
		Name     string `json:"event_name"`
		Value    uint64 `json:"value"`
	}{units.Text(e.ring), e.Time.UnixMicro(), e.read, e.metric, e.Name, e.Value})
	if err != nil {
		panic(err) // can't happen for strings and numbers
	}
	return append(append(b, line...), '\n')
}
