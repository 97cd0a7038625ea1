// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// measure prints one measurement, of a recording that of its end.
func (f *topFlags) measure(ctx context.Context, w world, source fleet.Source) error {
	board := fleet.NewBoard(f.window, 0)
	var frames []*diagnose.Frame
	for len(frames) < 2 || f.recorded {
		frame, err := source.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		board.Add(frame)
		frames = append(frames, frame)
	}
	switch {
	case f.output.value == "json":
		out := json.NewEncoder(w.out)
		out.SetEscapeHTML(false)
		for _, frame := range frames[max(0, len(frames)-2):] {
			if err := out.Encode(frame); err != nil {
				return err
			}
		}
		return nil
	case len(board.Rows()) == 0:
		fmt.Fprint(w.err, f.empty(source.Name()))
		return nil
	}
	rows := fleet.Filter(board.Rows(), "", false)
	fleet.Sort(rows, fleet.Key(f.sort), false)
	return writeTop(w.out, rows)
}

func writeTop(w io.Writer, rows []*fleet.Row) error {
	t := newTable("AGENT", ">OUT", ">IN", ">XFER/S", ">P50", ">P99", ">POST50", ">POST99", ">TPUT10", ">TPUT50", ">SPEED", ">ERR/S", ">MEMORY", ">RING",
		"LAYOUT", "ALIVE", "READER", "NOTES")
	dash := func(s string) string { return cmp.Or(s, "-") }
	for _, r := range rows {
		memory := "?"
		if r.Memory != nil {
			memory = units.Memory(*r.Memory)
		}
		var notes []string
		for _, p := range r.Problems {
			notes = append(notes, p.Text)
		}
		t.add(units.Printable(r.Name), units.Throughput(r.Out), units.Throughput(r.In), units.Rate(r.Completed),
			dash(fleet.Duration(r.P50)), dash(fleet.Duration(r.P99)), dash(fleet.Duration(r.PostP50)), dash(fleet.Duration(r.PostP99)),
			dash(units.Throughput(r.ThroughputP10)), dash(units.Throughput(r.ThroughputP50)), dash(units.Throughput(r.Speed)),
			units.Rate(r.Failures), memory, fmt.Sprintf("%.0f%%", 100*r.Fill()), r.Layout, r.Up.String(), dash(units.Printable(r.Consumer())),
			strings.Join(notes, ", "))
	}
	return t.write(w)
}
