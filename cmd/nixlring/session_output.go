// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/session"
)

// analyzed is the JSON output of nixlring session analyze. The field names are stable. The
// summaries have the field names of package session.
type analyzed struct {
	CSV         string           `json:"csv"`
	Summary     analyzedRows     `json:"summary"`
	Written     *session.Summary `json:"written_summary,omitempty"`
	Devices     []analyzedShare  `json:"devices"` // most time first
	Workers     []analyzedShare  `json:"workers"` // most time first
	Layers      []analyzedShare  `json:"layers"`
	Slowest     []analyzedPacket `json:"slowest"`
	Failures    []analyzedPacket `json:"failures"`          // the first 100
	Skipped     []analyzedSkip   `json:"skipped"`           // the first 100
	SkippedRows int64            `json:"skipped_rows"`      // their number
	Problem     string           `json:"problem,omitempty"` // why the session's own summary can't be read
}

// analyzedRows is a summary of the rows in the CSV. Values that rows don't contain are null.
type analyzedRows struct {
	session.Summary

	// These hide the fields of the embedded summary.
	PromptTokens     *int64   `json:"prompt_tokens"`
	TokensGenerated  *int64   `json:"tokens_generated"`
	TotalTokens      *int64   `json:"total_tokens"`
	TokensPerSecond  *float64 `json:"tokens_per_second"`
	ContentionEvents *int64   `json:"cpu_igpu_contention_events"`
}

type analyzedShare struct {
	Device  string      `json:"device,omitempty"`
	Worker  string      `json:"worker,omitempty"`
	Layer   json.Number `json:"layer,omitempty"`
	Packets int64       `json:"packets"` // successful ones
	TimeMS  float64     `json:"time_ms"`
}

type analyzedSkip struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

type analyzedPacket struct {
	Time       time.Time `json:"time"`
	Packet     int64     `json:"packet_id"`
	Operation  string    `json:"operation"`
	Layer      int       `json:"layer_idx"`
	Device     string    `json:"device"`
	Worker     string    `json:"worker_instance"`
	DurationMS float64   `json:"duration_ms"`
	Error      string    `json:"error_message,omitempty"`
}

func newAnalyzed(r *session.Report) analyzed {
	a := analyzed{
		CSV: r.Path, Summary: analyzedRows{Summary: r.Summary}, Written: r.Written,
		Devices: []analyzedShare{}, Workers: []analyzedShare{}, Layers: []analyzedShare{},
		Skipped: []analyzedSkip{}, SkippedRows: r.SkippedRows,
		Slowest: packets(r.Slowest), Failures: packets(r.Failures),
	}
	for _, s := range r.Devices {
		a.Devices = append(a.Devices, analyzedShare{Device: s.Name, Packets: s.Packets, TimeMS: millis(s.Time)})
	}
	for _, s := range r.Workers {
		a.Workers = append(a.Workers, analyzedShare{Worker: s.Name, Packets: s.Packets, TimeMS: millis(s.Time)})
	}
	for _, s := range r.Layers {
		a.Layers = append(a.Layers, analyzedShare{Layer: json.Number(s.Name), Packets: s.Packets, TimeMS: millis(s.Time)})
	}
	for _, row := range r.Skipped {
		a.Skipped = append(a.Skipped, analyzedSkip(row))
	}
	if r.WrittenErr != nil {
		a.Problem = r.WrittenErr.Error()
	}
	return a
}

func packets(rows []session.Row) []analyzedPacket {
	list := make([]analyzedPacket, len(rows)) // never null
	for i, row := range rows {
		list[i] = analyzedPacket{
			Time: row.Time, Packet: row.PacketID, Operation: row.Operation, Layer: row.Layer,
			Device: row.Device, Worker: row.Worker, DurationMS: millis(row.Duration), Error: row.Error,
		}
	}
	return list
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
