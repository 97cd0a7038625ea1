// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

const headerLine = "timestamp,device,worker_instance,duration_ms,packet_id,layer_idx,operation,success,memory_used_mb,error_message\n"

func TestCSVNumbersHaveTheFormatOfPython(t *testing.T) {
	t.Run("duration", func(t *testing.T) {
		for _, d := range []time.Duration{
			0, 1, 499, 501, 999, 1000, 1999, 57 * time.Microsecond, 1056789, 5200 * time.Microsecond,
			time.Second - 1, time.Hour, math.MaxInt64,
		} {
			got := row(Packet{Duration: d}, "")[3]
			want := fmt.Sprintf("%.3f", milliseconds(d))
			if got != want {
				t.Errorf("%d ns is %s ms, want %s", d, got, want)
			}
		}
	})
	t.Run("memory", func(t *testing.T) {
		for _, bytes := range []int64{0, 1, 5242, 5243, 10 << 20, 134742016, 47395635, 1 << 40, math.MaxInt64} {
			got := row(Packet{Memory: bytes}, "")[8]
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
			if got := row(Packet{End: time.Unix(0, nanoseconds)}, "")[0]; got != want {
				t.Errorf("%d ns is %s, want %s", nanoseconds, got, want)
			}
		}
	})
	t.Run("success", func(t *testing.T) {
		if got := row(Packet{}, "")[7]; got != "True" {
			t.Error(got)
		}
		if got := row(Packet{Err: textError("x")}, "x")[7]; got != "False" {
			t.Error(got)
		}
	})
}

// row returns the fields of a packet's row.
func row(p Packet, message string) []string {
	b := appendRow(nil, p.End, appendHead(nil, "d", "w"), appendTail(nil, p.Layer, "o"), &p, message)
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
		"other text":      "hello",
		"after a line":    "\nhello",
		"a quote":         `"hello`,
		"other CSV":       "timestamp_us,category,event_name,value\n1,2,3,4\n",
		"no header":       valid,
		"too few fields":  headerLine + "1.5,cpu\n" + valid,
		"bad duration":    headerLine + strings.Replace(valid, "1.0", "fast", 1) + valid,
		"infinite":        headerLine + strings.Replace(valid, "1.0", "inf", 1) + valid,
		"not a number":    headerLine + strings.Replace(valid, "1.0", "nan", 1) + valid,
		"bad success":     headerLine + strings.Replace(valid, "True", "yes", 1) + valid,
		"bad layer":       headerLine + strings.Replace(valid, ",0,", ",first,", 1) + valid,
		"quote in a word": headerLine + strings.Replace(valid, "cpu", `c"pu`, 1) + valid,
		"bad last row":    headerLine + valid + "1.5,cpu\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.csv")
			write(t, path, content)
			if _, err := Analyze(path); !strings.Contains(fmt.Sprint(err), ErrFormat.Error()) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
