// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"
)

// Summary is the summary of a session, which Close writes as JSON. Names that end in
// _s are in seconds, those that end in _ms in milliseconds. Ratios and averages
// without packets are 0.
type Summary struct {
	SessionName string  `json:"session_name"`
	StartTime   float64 `json:"start_time"` // seconds since 1970
	EndTime     float64 `json:"end_time"`
	TotalTimeS  float64 `json:"total_time_s"`

	PromptTokens    int64 `json:"prompt_tokens"`
	TokensGenerated int64 `json:"tokens_generated"`
	TotalTokens     int64 `json:"total_tokens"`
	// TokensPerSecond is the generated tokens divided by the session's time.
	TokensPerSecond float64 `json:"tokens_per_second"`

	TotalPackets  int64   `json:"total_packets_processed"` // including failed packets
	CPUPackets    int64   `json:"cpu_packets"`             // successful packets
	IGPUPackets   int64   `json:"igpu_packets"`            // successful packets
	FailedPackets int64   `json:"failed_packets"`
	SuccessRate   float64 `json:"success_rate"` // 0 to 1

	// Times of successful packets.
	TotalCPUTimeMS  float64 `json:"total_cpu_time_ms"`
	TotalIGPUTimeMS float64 `json:"total_igpu_time_ms"`
	AvgCPUTimeMS    float64 `json:"avg_cpu_time_ms"`
	AvgIGPUTimeMS   float64 `json:"avg_igpu_time_ms"`

	// Shares of all packets, 0 to 1.
	CPUUtilization  float64 `json:"cpu_utilization"`
	IGPUUtilization float64 `json:"igpu_utilization"`

	// ExpertSelections counts the packets that name an expert, by expert_{name}, and other
	// packets whose operation contains "expert", by {operation}_layer_{n}, as the Python program
	// does. It includes failed packets. If a pipeline names the expert both in the router's
	// packet and in the expert's own, both count.
	ExpertSelections map[string]int64 `json:"expert_selection_distribution"`
	// ContentionEvents is the count of [Session.AddContentionEvents].
	ContentionEvents int64 `json:"cpu_igpu_contention_events"`

	Operations map[string]Group `json:"operation_breakdown"`

	CSVLog      string `json:"csv_log"`      // path of the CSV
	JSONSummary string `json:"json_summary"` // path of this summary
}

// Group holds the totals of the packets of one operation, device, worker or layer. Only Count
// and FailedCount include failed packets.
type Group struct {
	Name        string   `json:"name,omitempty"` // for a layer, its index; empty in a Summary
	Count       int64    `json:"count"`
	TotalTimeMS float64  `json:"total_time_ms"`
	AvgTimeMS   float64  `json:"avg_time_ms"`
	MinTimeMS   *float64 `json:"min_time_ms"` // nil without successful packets
	MaxTimeMS   float64  `json:"max_time_ms"`
	CPUCount    int64    `json:"cpu_count"`
	IGPUCount   int64    `json:"igpu_count"`
	FailedCount int64    `json:"failed_count"`
}

// summary returns a summary with the totals of a session, and with the names, tokens and
// contention events of s.
func (t *totals) summary(s Summary, start, end time.Time) Summary {
	took := max(end.Sub(start), 0)
	packets := float64(t.all.packets + t.all.failed)
	device := func(name string) Group {
		if g := t.devices[name]; g != nil {
			return g.named("")
		}
		return Group{}
	}
	cpu, igpu := device(CPU), device(IGPU)

	s.StartTime = seconds(start)
	s.EndTime = seconds(start.Add(took)) // not before the start, even if the clock was set back
	s.TotalTimeS = took.Seconds()
	s.TotalTokens = s.PromptTokens + s.TokensGenerated
	s.TokensPerSecond = ratio(float64(s.TokensGenerated), took.Seconds())

	s.TotalPackets, s.FailedPackets = t.all.packets+t.all.failed, t.all.failed
	s.SuccessRate = ratio(float64(t.all.packets), packets)
	s.CPUPackets, s.IGPUPackets = cpu.CPUCount, igpu.IGPUCount
	s.TotalCPUTimeMS, s.TotalIGPUTimeMS = cpu.TotalTimeMS, igpu.TotalTimeMS
	s.AvgCPUTimeMS, s.AvgIGPUTimeMS = cpu.AvgTimeMS, igpu.AvgTimeMS
	s.CPUUtilization, s.IGPUUtilization = ratio(float64(cpu.CPUCount), packets), ratio(float64(igpu.IGPUCount), packets)

	s.ExpertSelections = make(map[string]int64, len(t.experts))
	for name, g := range t.experts {
		s.ExpertSelections[name] = g.packets + g.failed
	}
	s.Operations = make(map[string]Group, len(t.operations))
	for name, g := range t.operations {
		s.Operations[name] = g.named("")
	}
	return s
}

// write writes the summary to a file, which must not exist unless overwrite is true.
func (s Summary) write(path string, overwrite bool) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		return err
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if overwrite {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(path, flags, 0o666)
	if err != nil {
		return exists(err)
	}
	if _, err := f.Write(b.Bytes()); err != nil {
		return errors.Join(err, f.Close(), os.Remove(path))
	}
	return f.Close()
}

// readSummary reads a summary of this package or of the Python program.
func readSummary(path string) (*Summary, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var s Summary
	if err := json.Unmarshal(finite(b), &s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &s, nil
}

// notFinite matches the words that Python's json module writes for numbers that aren't
// finite, although they aren't valid JSON. It also matches strings, which may contain
// these words.
var notFinite = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?Infinity|NaN`)

// finite replaces Infinity and NaN with null.
func finite(b []byte) []byte {
	return notFinite.ReplaceAllFunc(b, func(found []byte) []byte {
		if found[0] == '"' {
			return found
		}
		return []byte("null")
	})
}

func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMicro()) / 1e6
}

func milliseconds(d time.Duration) float64 {
	return float64(d) / float64(time.Millisecond)
}

func ratio(part, of float64) float64 {
	if of == 0 {
		return 0
	}
	return part / of
}
