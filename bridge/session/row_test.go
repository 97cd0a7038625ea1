// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

func TestCSVNumbersHaveTheFormatOfPython(t *testing.T) {
	for _, c := range []struct {
		row  Row
		want string
	}{
		{Row{Time: time.Unix(0, 1763318069867833400), Success: true}, "1763318069.867833,,,0.000,0,0,,True,0.00,"},
		{Row{Time: time.Unix(0, 999), Duration: 499}, "0.000000,,,0.000,0,0,,False,0.00,"},
		{Row{Time: time.Unix(-2, 5e8), Duration: 1999, Layer: -1}, "-1.500000,,,0.002,0,-1,,False,0.00,"},
		{Row{Time: time.Unix(1, 0), Duration: maxDuration, MemoryMB: 134742016.0 / bytesPerMB}, "1.000000,,,86400000.000,0,0,,False,128.50,"},
		{Row{Time: time.Unix(1, 0), MemoryMB: 1 << 43}, "1.000000,,,0.000,0,0,,False,8796093022208.00,"},
	} {
		equal(t, c.want+"\n", string(appendRow(nil, &c.row)))
	}
}

func TestRealSessionsAreRecordedAgain(t *testing.T) {
	for _, name := range upstream {
		original := rowsOf(t, read(t, upstreamPath(name+".csv")))
		s := openTest(t, t.TempDir())
		for _, r := range original {
			recordAll(t, s, packetOf(r))
		}
		equal(t, original, rowsOf(t, read(t, s.sum.CSVLog)))
	}
}

func TestAnalyzeRejectsFilesThatAreNotSessions(t *testing.T) {
	for _, content := range []string{
		"hello", "\nhello", `"hello`, "timestamp,device\n", headerLine[:30] + "\n1.5,cpu\n", "timestamp_us,category,event_name,value\n1,2,3,4\n", "1.5,cpu,w,1.0,1,0,op,True,0.00,\n",
	} {
		path := filepath.Join(t.TempDir(), "x.csv")
		write(t, path, content)
		if _, err := Analyze(path); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: the error is %v", content, err)
		}
	}
}

// The same rows, as spreadsheets and other programs save them.
func TestFilesOfSpreadsheetsAreRead(t *testing.T) {
	const rows = "1763318069.250000,cpu,w,1.056,1,-1,embedding,True,10.50,\n" +
		"1763318070.500000,igpu,w,2.500,2,0,op,False,0.00,\"said \"\"no\"\"\"\n"
	const file = "timestamp,device,worker_instance,duration_ms,packet_id,layer_idx,operation,success,memory_used_mb,error_message\n" + rows
	semicolons := strings.ReplaceAll(file, ",", ";")
	for name, content := range map[string]string{
		"English":              strings.NewReplacer("True", "TRUE", "False", "FALSE", "0000,", ",", "10.50", "10.5", "0.00", "0").Replace(file),
		"lower case":           strings.NewReplacer("True", "true", "False", "false").Replace(file),
		"numbers":              strings.NewReplacer("True", "1", "False", "0").Replace(file),
		"CRLF":                 "\uFEFF" + strings.ReplaceAll(file, "\n", "\r\n"),
		"quoted":               "\uFEFF\"" + strings.NewReplacer(`"said ""no"""`, `said ""no""`, ",", `","`, "\n", "\"\r\n\"").Replace(strings.TrimSuffix(file, "\n")) + "\"\n",
		"semicolons":           semicolons,
		"decimal commas":       "\uFEFF" + strings.ReplaceAll(semicolons, ".", ","),
		"tabs":                 strings.ReplaceAll(semicolons, ";", "\t"),
		"no separator at ends": strings.Replace(file, "10.50,\n", "10.50\n", 1),
	} {
		t.Run(name, func(t *testing.T) { equal(t, rowsOf(t, file), rowsOf(t, content)) })
	}
}

func TestFilesWithoutValidRowsAreRejectedWithTheReason(t *testing.T) {
	for row, reason := range map[string]string{
		"1763318069.8,cpu,w,1.0,1,0,op,WAHR,0,\n":                      `line 2: invalid success "WAHR"`,
		"1763318069.8,cpu,w,\"1,056\",1,0,op,True,0,\n":                `line 2: invalid duration_ms "1,056"`, // or 1056 ms?
		"1763318069.8,cpu,w,1.0,1,0,op,True,0,,\n":                     "line 2: got 11 fields, want 10",
		strings.Repeat("0,17/11/2025,cpu,w,1.0,1,0,op,True,0,\n", 200): "line 2: got 11 fields, want 10",
	} {
		path := filepath.Join(t.TempDir(), "x.csv")
		write(t, path, headerLine+row)
		_, err := Analyze(path)
		_, recoverErr := Recover(path, false)
		for _, err := range []error{err, recoverErr} {
			if !errors.Is(err, ErrFormat) || !strings.HasSuffix(err.Error(), path+": not the CSV of a session: no row is valid; "+reason) {
				t.Errorf("%q: the error is %v", row, err)
			}
		}
		if _, err := os.Stat(strings.TrimSuffix(path, ".csv") + ".json"); err == nil {
			t.Error("Recover wrote a summary")
		}
	}
}

func TestInvalidRowsAreReportedAndSkipped(t *testing.T) {
	for invalid, reason := range map[string]string{
		"1.5,cpu\n":                                  "got 2 fields, want 10",
		"1.5,cpu,w,fast,1,0,op,True,0.00,\n":         `invalid duration_ms "fast"`,
		"1.5,cpu,w,inf,1,0,op,True,0.00,\n":          `invalid duration_ms "inf"`,
		"now,cpu,w,fast,1,0,op,True,0.00,\n":         `invalid timestamp "now"`, // the first one
		"1.5,cpu,w,nan,1,0,op,True,0.00,\n":          `invalid duration_ms "nan"`,
		"1.5,cpu,w,-250.000,1,0,op,True,0.00,\n":     `invalid duration_ms "-250.000"`,
		"1.5,cpu,w,86400000.001,1,0,op,True,0.00,\n": `invalid duration_ms "86400000.001"`,
		"1e13,cpu,w,1.0,1,0,op,True,0.00,\n":         `invalid timestamp "1e13"`,
		"1.5,cpu,w,1.0,one,0,op,True,0.00,\n":        `invalid packet_id "one"`,
		"1.5,cpu,w,1.0,1,first,op,True,0.00,\n":      `invalid layer_idx "first"`,
		"1.5,cpu,w,1.0,1,0,op,yes,0.00,\n":           `invalid success "yes"`,
		"1.5,cpu,w,1.0,1,0,op,True,-1,\n":            `invalid memory_used_mb "-1"`,
		"1.5,c\"pu,w,1.0,1,0,op,True,0.00,\n":        `bare " in non-quoted-field`,
		"1.5,\"c\"pu,w,1.0,1,0,op,True,0.00,\n":      "incomplete: a quoted field doesn't end",
	} {
		const valid = "1.5,cpu,w,1.0,1,0,op,True,0.00,\n"
		for _, content := range []string{valid + invalid + valid, valid + invalid} {
			path := filepath.Join(t.TempDir(), "x.csv")
			write(t, path, headerLine+content)
			r, err := Analyze(path)
			must.OK(t, err)
			equal(t, []SkippedRow{{path, 3, reason}}, r.Skipped)
			equal(t, int64(strings.Count(content, valid)), r.Summary.TotalPackets)
			if text := r.String(); !strings.Contains(text, "  line 3: "+reason+"\n") {
				t.Errorf("the report is\n%s", text)
			}
		}
	}
}

// Whatever a program records, the report includes each row, with its values on one line.
func TestEveryRecordedPacketIsRead(t *testing.T) {
	s := openTest(t, t.TempDir())
	for _, c := range []struct {
		packet Packet
		want   Row
	}{
		{Packet{Duration: time.Since(time.Time{})}, Row{Worker: "_"}}, // the program didn't set the start
		{Packet{Duration: math.MinInt64, Memory: math.MinInt64}, Row{Worker: "_"}},
		{Packet{Duration: maxDuration, ID: math.MinInt64, Layer: math.MaxInt}, Row{Worker: "_", Duration: maxDuration, PacketID: math.MinInt64, Layer: math.MaxInt}},
		{Packet{Memory: math.MaxInt64}, Row{Worker: "_", MemoryMB: 1 << 43}},
		{Packet{End: time.Unix(math.MaxInt64/2, 0)}, Row{Worker: "_"}},
		{Packet{End: time.Unix(math.MinInt64/2, 0)}, Row{Worker: "_"}},
		{Packet{Err: textError("\uFEFF,\"\r\n\x00\xff")}, Row{Worker: "_", Error: "\uFEFF,\"" + `\n` + "\uFFFD\uFFFD"}},
		{Packet{Operation: "\n\"", Device: "\r", Worker: ","}, Row{Operation: `\n"`, Device: `\r`, Worker: ","}},
	} {
		recordAll(t, s, c.packet)
		rows := rowsOf(t, read(t, s.sum.CSVLog))
		c.want.Success = c.packet.Err == nil
		got := rows[len(rows)-1]
		got.Time = time.Time{}
		equal(t, c.want, got)
	}
	if lines := strings.Count(read(t, s.sum.CSVLog), "\n"); lines != 9 {
		t.Errorf("%d lines, want 9", lines)
	}
}

// Recording the real sessions again shows the workers of most operations.
func TestWorkerIsDerivedFromOperationAndDevice(t *testing.T) {
	for _, c := range []struct{ operation, device, want string }{
		{"embedding", IGPU, "igpu_embedding"},
		{"embedding_lookup", CPU, "cpu_embedding_lookup"}, // another operation
		{"expert_selection", IGPU, "cpu_router"},
		{"router_norm", CPU, "cpu_router"},
		{"expert_ffn", CPU, "cpu_expert_ffn_layer_3"},
		{"expert_ffn_norm", "npu", "cpu_expert_ffn_layer_3"},
		{"rms_norm", IGPU, "igpu_layernorm_layer_3"},
		{"sampling", CPU, "cpu_sampling"},
		{"expert_merge", IGPU, "igpu_expert_merge"},
	} {
		equal(t, c.want, worker(c.operation, c.device, 3))
	}
}
