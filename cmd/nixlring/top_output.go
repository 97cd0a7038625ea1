// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/screen"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// measure prints one measurement, of a recording that of its end.
func (f *topFlags) measure(ctx context.Context, w world, source fleet.Source) error {
	board := fleet.NewBoard(f.window)
	var frames []*diagnose.Frame
	for len(frames) < 2 || f.past() {
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
		fmt.Fprint(w.err, f.empty(w, source.Name()))
		return nil
	}
	rows := board.Rows()
	screen.Sort(rows, f.sort)
	titles, cells := screen.Table(rows)
	t := newTable(titles...)
	for _, line := range cells {
		t.add(line...)
	}
	return t.write(w.out)
}
