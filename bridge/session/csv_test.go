// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

func TestCSVNumbersHaveTheFormatOfPython(t *testing.T) {
	t.Run("duration", func(t *testing.T) {
		for _, d := range []time.Duration{
			0, 1, 499, 501, 999, 1000, 1999, 57 * time.Microsecond, 1056789, 5200 * time.Microsecond,
			time.Second - 1, time.Hour, maxDuration,
		} {
			got := row(Row{Duration: d})[3]
			want := fmt.Sprintf("%.3f", milliseconds(d))
			if got != want {
				t.Errorf("%d ns is %s ms, want %s", d, got, want)
			}
		}
	})
	t.Run("memory", func(t *testing.T) {
		for _, bytes := range []int64{0, 1, 5242, 5243, 10 << 20, 134742016, 47395635, 1 << 40, math.MaxInt64} {
			got := row(Row{MemoryMB: float64(bytes) / bytesPerMB})[8]
			want := fmt.Sprintf("%.2f", float64(bytes)/bytesPerMB)
			if got != want {
				t.Errorf("%d bytes are %s MB, want %s", bytes, got, want)
			}
		}
	})
	t.Run("timestamp", func(t *testing.T) {
		for nanoseconds, want := range map[int64]string{
			1763318069867833400: "1763318069.867833",
			1763318069000000000: "1763318069.000000",
			999:                 "0.000000",
			-1500000000:         "-1.500000",
		} {
			if got := row(Row{Time: time.Unix(0, nanoseconds)})[0]; got != want {
				t.Errorf("%d ns is %s, want %s", nanoseconds, got, want)
			}
		}
	})
	t.Run("success", func(t *testing.T) {
		if got := row(Row{Success: true})[7]; got != "True" {
			t.Error(got)
		}
		if got := row(Row{})[7]; got != "False" {
			t.Error(got)
		}
	})
}

// row returns the fields of a row.
func row(r Row) []string {
	b := appendRow(nil, &r)
	return strings.Split(strings.TrimSuffix(string(b), "\n"), ",")
}

// Recording the packets of upstream's sessions reproduces upstream's rows, except for
// the seventh decimal of timestamps.
func TestCSVOfRealSessionsIsReproduced(t *testing.T) {
	for _, name := range upstream {
		t.Run(name, func(t *testing.T) {
			original := read(t, upstreamPath(name+".csv"))
			s := openTest(t, t.TempDir())
			for _, r := range rowsOf(t, original) {
				must.OK(t, s.Record(t.Context(), packetOf(r)))
			}
			closeTest(t, s)
			if diff := cmp.Diff(sixDecimals(t, original), read(t, s.files.csv)); diff != "" {
				t.Errorf("(-upstream +ours):\n%s", diff)
			}
		})
	}
}

func sixDecimals(t *testing.T, content string) string {
	t.Helper()
	lines := strings.SplitAfter(content, "\n")
	for i, line := range lines[1:] {
		if line == "" {
			continue
		}
		stamp, rest, _ := strings.Cut(line, ",")
		var v float64
		if _, err := fmt.Sscan(stamp, &v); err != nil {
			t.Fatal(err)
		}
		us := int64(math.Round(v * 1e6))
		lines[i+1] = fmt.Sprintf("%d.%06d,%s", us/1e6, us%1e6, rest)
	}
	return strings.Join(lines, "")
}

func TestAnalyzeRejectsFilesThatAreNotSessions(t *testing.T) {
	valid := "1.5,cpu,w,1.0,1,0,op,True,0.00,\n"
	for name, content := range map[string]string{
		"other text":   "hello",
		"after a line": "\nhello",
		"a quote":      `"hello`,
		"other CSV":    "timestamp_us,category,event_name,value\n1,2,3,4\n",
		"no header":    valid,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.csv")
			write(t, path, content)
			if _, err := Analyze(path); !errors.Is(err, ErrFormat) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestInvalidRowsAreReportedAndSkipped(t *testing.T) {
	for invalid, reason := range map[string]string{
		"1.5,cpu\n":                                  "got 2 fields, want 10",
		"1.5,cpu,w,fast,1,0,op,True,0.00,\n":         `invalid duration_ms "fast"`,
		"1.5,cpu,w,inf,1,0,op,True,0.00,\n":          `invalid duration_ms "inf"`,
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
			equal(t, []SkippedRow{{3, reason}}, r.Skipped)
			equal(t, int64(strings.Count(content, valid)), r.Summary.TotalPackets)
			if text := textOf(t, r); !strings.Contains(text, "  line 3: "+reason+"\n") {
				t.Errorf("the report is\n%s", text)
			}
		}
	}
}

func TestByteOrderMarkIsIgnored(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.csv")
	write(t, path, "\uFEFF"+read(t, upstreamPath("test_session.csv")))
	r, err := Analyze(path)
	must.OK(t, err)
	equal(t, int64(5), r.Summary.TotalPackets)
	equal(t, int64(0), r.SkippedRows)
}

// Whatever a program records, the report includes each row.
func TestEveryRecordedPacketIsRead(t *testing.T) {
	s := openTest(t, t.TempDir())
	for _, p := range []Packet{
		{Duration: time.Since(time.Time{})}, // the program didn't set the start
		{Duration: math.MinInt64, Memory: math.MinInt64},
		{Duration: maxDuration, Memory: math.MaxInt64, ID: math.MinInt64, Layer: math.MaxInt},
		{End: time.Unix(math.MaxInt64/2, 0)},
		{End: time.Unix(math.MinInt64/2, 0)},
		{Err: textError("\uFEFF,\"\r\n\x00\xff")},
		{Operation: "\n\"", Device: "\r", Worker: ","},
	} {
		recordAll(t, s, p)
	}
	closeTest(t, s)
	r, err := Analyze(s.files.csv)
	must.OK(t, err)
	if got := r.Summary.TotalPackets; got != 7 || r.SkippedRows != 0 {
		t.Errorf("%d packets, skipped %v", got, r.Skipped)
	}
	if got := r.Slowest[1].Duration; got != 0 {
		t.Errorf("a packet without a start took %s", got)
	}
}

// Line breaks and commas in errors don't change the numbers of tools that split lines
// and fields.
func TestLineToolsGiveCorrectNumbers(t *testing.T) {
	s := openTest(t, t.TempDir())
	for i := range 1000 {
		p := Packet{ID: int64(i), Layer: i % 2, Operation: "expert_ffn", Device: IGPU, Duration: time.Duration(1+i%2) * time.Millisecond}
		if i%100 == 0 {
			p.Err = textError("device lost,\r\ncode \"7\",\nreset")
		}
		recordAll(t, s, p)
	}
	closeTest(t, s)
	for command, want := range map[string]string{
		`awk -F',' 'NR>1 {print $2}' s.csv | sort | uniq -c`:                                                                   "1000 igpu",
		`awk -F',' 'NR>1 {print $4, $7}' s.csv | sort -rn | head -n 1`:                                                         "2.000 expert_ffn",
		`awk -F',' 'NR>1 {sum[$6]+=$4; count[$6]++} END {for(l in sum) print l, sum[l]/count[l]}' s.csv | sort -n | tail -n 1`: "1 2",
		`wc -l < s.csv`: "1001",
		`awk -F',' 'NR>1 {if($8=="True") s++; t++} END {print s/t*100"%"}' s.csv`: "99%",
		`grep -c "False" s.csv`:                                  "10",
		`jq .operation_breakdown.expert_ffn.failed_count s.json`: "10",
	} {
		if tool, _, _ := strings.Cut(command, " "); !installed(tool) {
			t.Logf("%s isn't installed", tool)
			continue
		}
		sh := exec.CommandContext(t.Context(), "sh", "-c", command)
		sh.Dir = filepath.Dir(s.files.csv)
		out, err := sh.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%s: %q, want %q; %v", command, got, want, err)
		}
	}
}

func installed(tool string) bool {
	_, err := exec.LookPath(tool)
	return err == nil
}
