// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/live"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// slowTransfer is a slow transfer in the JSON output. The field names are stable.
type slowTransfer struct {
	Path       string  `json:"path"`
	Agent      string  `json:"agent"`
	Micros     uint64  `json:"timestamp_us"`
	Read       bool    `json:"time_of_reading"` // whether the timestamp is when the events were read
	Direction  string  `json:"direction"`
	Bytes      uint64  `json:"bytes"`
	Duration   float64 `json:"duration_seconds"`
	Post       float64 `json:"post_seconds"`
	Throughput uint64  `json:"throughput_bytes_per_second"`
	Cause      string  `json:"cause"` // slow_transfer or min_throughput
}

func newSlowTransfer(path, name string, t *live.Transfer) slowTransfer {
	direction := tally.Transmit
	if t.Receive {
		direction = tally.Receive
	}
	return slowTransfer{
		Path: units.Text(path), Agent: name, Micros: uint64(max(0, t.Time.UnixMicro())), Read: t.Read, Direction: direction.String(), Bytes: t.Bytes,
		Duration: float64(t.Took) / 1e6, Post: float64(t.Post) / 1e6, Throughput: semconv.Throughput(t.Bytes, t.Took), Cause: t.Cause,
	}
}

// slowWriter writes slow transfers to the output.
type slowWriter struct {
	out     io.Writer
	format  string
	most    uint64 // maximum number to write; 0 for no limit
	written uint64
}

func (w *slowWriter) enough() bool { return w.most > 0 && w.written >= w.most }

// head writes the line above the transfers.
func (w *slowWriter) head() error {
	if w.format == "json" {
		return nil
	}
	return w.line("TIME", "DIRECTION", "SIZE", "TOOK", "POST", "THROUGHPUT", "WHY", "AGENT")
}

func (w *slowWriter) write(list []slowTransfer) error {
	for i := range list {
		if w.enough() {
			return nil
		}
		if err := w.one(&list[i]); err != nil {
			return err
		}
		w.written++
	}
	return nil
}

func (w *slowWriter) one(t *slowTransfer) error {
	if w.format == "json" {
		enc := json.NewEncoder(w.out)
		enc.SetEscapeHTML(false)
		return enc.Encode(t)
	}
	return w.line(time.UnixMicro(int64(min(t.Micros, math.MaxInt64))).Format("2006-01-02 15:04:05.000000"), t.Direction,
		units.Bytes(t.Bytes), units.Duration(t.Duration), units.Duration(t.Post), units.Throughput(float64(t.Throughput)), t.Cause,
		units.Printable(t.Agent))
}

// summarize prints what was observed.
func (w *slowWriter) summarize(say io.Writer, transfers uint64, agents int) {
	fmt.Fprintf(say, "Slow transfers printed: %s; transfers observed: %s, of %s\n",
		units.Count(w.written), units.Count(transfers), plural(agents, "agent", "agents"))
}

// line writes columns of fixed widths, because later lines aren't known yet.
func (w *slowWriter) line(at, direction, size, took, post, throughput, cause, agent string) error {
	_, err := fmt.Fprintf(w.out, "%-26s  %-9s  %8s  %8s  %8s  %10s  %-14s  %s\n", at, direction, size, took, post, throughput, cause, agent)
	return err
}
