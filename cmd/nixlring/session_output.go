package main

import (
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/session"
)

// analyzed is a report as nixlring session analyze writes it for programs. The
// field names are stable; those of the summary are the session's own.
type analyzed struct {
	CSV      string           `json:"csv"`
	Summary  analyzedRows     `json:"summary"`
	Written  *session.Summary `json:"written_summary,omitempty"`
	Workers  []analyzedTime   `json:"workers"` // the most time first
	Layers   []analyzedTime   `json:"layers"`
	Slowest  []analyzedPacket `json:"slowest"`
	Failures []analyzedPacket `json:"failures"` // the first 100
	CutLine  int              `json:"cut_line,omitempty"`
	Problem  string           `json:"problem,omitempty"` // with the summary that the session wrote
}

// analyzedRows is a summary of the CSV's rows. What a row doesn't say is null.
type analyzedRows struct {
	session.Summary

	// These take the place of the summary's own.
	PromptTokens     *int64   `json:"prompt_tokens"`
	TokensGenerated  *int64   `json:"tokens_generated"`
	TotalTokens      *int64   `json:"total_tokens"`
	TokensPerSecond  *float64 `json:"tokens_per_second"`
	ContentionEvents *int64   `json:"cpu_igpu_contention_events"`
}

type analyzedTime struct {
	Worker  string  `json:"worker,omitempty"`
	Layer   *int    `json:"layer,omitempty"`
	Packets int64   `json:"packets"`
	TimeMS  float64 `json:"time_ms"`
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
		CSV: r.Path, Summary: analyzedRows{Summary: r.Summary}, Written: r.Written, CutLine: r.CutLine,
		Workers: []analyzedTime{}, Layers: []analyzedTime{},
		Slowest: packets(r.Slowest), Failures: packets(r.Failures),
	}
	for _, w := range r.Workers {
		a.Workers = append(a.Workers, analyzedTime{Worker: w.Worker, Packets: w.Packets, TimeMS: millis(w.Time)})
	}
	for _, l := range r.Layers {
		a.Layers = append(a.Layers, analyzedTime{Layer: &l.Layer, Packets: l.Packets, TimeMS: millis(l.Time)})
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
