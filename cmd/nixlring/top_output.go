// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/top"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// measure prints one measurement, of a recording that of its end. If ctx is done before the
// end of the window, it prints the measurement up to then.
func (f *topFlags) measure(ctx context.Context, w world, source top.Source) error {
	board := top.NewBoard(f.window, 1)
	board.Add(source.Sample())
	if r, ok := source.(*top.Recording); ok {
		const steps = 10 // in a window
		for r.Advance(ctx, f.window/steps) {
			board.Add(source.Sample())
		}
	} else {
		timer := time.NewTimer(f.window)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
	board.Add(source.Sample())
	rows := top.Filter(board.Rows(), "", false)
	top.Sort(rows, top.Key(f.sort), false)
	if err := board.Err(); err != nil {
		return err
	}
	switch {
	case f.output.value == "json":
		return writeTopJSON(w.out, rows)
	case len(rows) == 0:
		fmt.Fprint(w.err, f.empty(source.Name(), board.Excluded()))
		return nil
	}
	return writeTopText(w.out, rows)
}

// measured is an agent in the JSON output of nixlring top. Unknown values are null.
type measured struct {
	Path          string   `json:"path"`
	Agent         string   `json:"agent"`
	Layout        string   `json:"layout"`
	Transmit      float64  `json:"transmit_bytes_per_second"`
	Receive       float64  `json:"receive_bytes_per_second"`
	Transfers     float64  `json:"transfers_per_second"`
	TransferP50   *float64 `json:"transfer_p50_seconds"`
	TransferP99   *float64 `json:"transfer_p99_seconds"`
	PostP50       *float64 `json:"post_p50_seconds"`
	PostP99       *float64 `json:"post_p99_seconds"`
	ThroughputP10 *float64 `json:"throughput_p10_bytes_per_second"`
	ThroughputP50 *float64 `json:"throughput_p50_bytes_per_second"`
	Speed         *float64 `json:"speed_bytes_per_second"` // bytes by transfer time
	Findings      []string `json:"findings"`               // kinds, about transfers
	Errors        float64  `json:"errors_per_second"`
	Memory        *int64   `json:"memory_bytes"`
	Capacity      int      `json:"ring_capacity"` // slots
	Fill          float64  `json:"ring_fill"`     // 0 to 1, the peak
	Alive         *bool    `json:"agent_alive"`
	Reader        string   `json:"reader"`
	Age           *float64 `json:"last_event_age_seconds"`
	Saturations   uint64   `json:"ring_saturations"`
	Torn          uint64   `json:"ring_torn_groups"`
	Dropped       uint64   `json:"events_dropped"`
	Missed        uint64   `json:"misses"`
	Restarts      uint64   `json:"restarts"`
	Problems      []string `json:"problems"`

	// Totals since the agent was first seen by the Collector or, without one, by top.
	TransmitTotal uint64            `json:"transmit_bytes"`
	ReceiveTotal  uint64            `json:"receive_bytes"`
	TransferTotal uint64            `json:"transfers"`
	BusyTotal     float64           `json:"transfer_time_seconds"`
	PostTotal     float64           `json:"post_time_seconds"`
	ErrorTotal    uint64            `json:"errors"`
	Attributes    map[string]string `json:"attributes"`
}

func newMeasured(r *top.Row) measured {
	s := &r.Since
	m := measured{
		Path: units.Text(r.Path), Agent: r.Name, Layout: r.Layout,
		Transmit: r.Out, Receive: r.In, Transfers: r.Transfers, Errors: r.Errors,
		TransferP50: number(r.P50), TransferP99: number(r.P99), PostP50: number(r.PostP50), PostP99: number(r.PostP99),
		ThroughputP10: number(r.ThroughputP10), ThroughputP50: number(r.ThroughputP50), Speed: number(r.Speed), Findings: []string{},
		Capacity: r.Capacity, Fill: r.Fill, Alive: r.Alive.Bool(), Reader: r.ReaderName(),
		Saturations: s.Saturations, Torn: s.Torn, Dropped: s.Dropped, Missed: s.Missed, Restarts: s.Restarts,
		Problems:      []string{},
		TransmitTotal: r.Totals.Out, ReceiveTotal: r.Totals.In, TransferTotal: r.Totals.Transfers,
		BusyTotal: float64(r.Totals.Took) / 1e6, PostTotal: float64(r.Totals.Posted) / 1e6, ErrorTotal: r.Totals.Errors,
		Attributes: r.Attributes,
	}
	for i := range r.Findings {
		m.Findings = append(m.Findings, string(r.Findings[i].Kind))
	}
	if !r.NoEvents {
		age := r.Age.Seconds()
		m.Age = &age
	}
	if !r.MemoryUnknown {
		m.Memory = &r.Memory
	}
	for _, p := range r.Problems {
		m.Problems = append(m.Problems, p.Text)
	}
	return m
}

// number returns nil for NaN, which JSON doesn't have.
func number(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}

func writeTopJSON(w io.Writer, rows []*top.Row) error {
	all := make([]measured, len(rows)) // never null
	for i, r := range rows {
		all[i] = newMeasured(r)
	}
	return writeJSON(w, all)
}

func writeTopText(w io.Writer, rows []*top.Row) error {
	t := newTable("AGENT", ">OUT", ">IN", ">XFER/S", ">P50", ">P99", ">POST50", ">POST99", ">TPUT10", ">TPUT50", ">SPEED", ">ERR/S", ">MEMORY", ">RING",
		"LAYOUT", "ALIVE", "READER", "NOTES")
	dash := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	for _, r := range rows {
		memory := "?"
		if !r.MemoryUnknown {
			memory = units.Memory(r.Memory)
		}
		var notes []string
		for _, p := range r.Problems {
			notes = append(notes, p.Text)
		}
		t.add(units.Printable(r.Name), units.Throughput(r.Out), units.Throughput(r.In), units.Rate(r.Transfers),
			dash(top.Duration(r.P50)), dash(top.Duration(r.P99)), dash(top.Duration(r.PostP50)), dash(top.Duration(r.PostP99)),
			dash(units.Throughput(r.ThroughputP10)), dash(units.Throughput(r.ThroughputP50)), dash(units.Throughput(r.Speed)), units.Rate(r.Errors), memory, fmt.Sprintf("%.0f%%", 100*r.Fill),
			r.Layout, r.Alive.String(), dash(units.Printable(r.ReaderName())), strings.Join(notes, ", "))
	}
	return t.write(w)
}
