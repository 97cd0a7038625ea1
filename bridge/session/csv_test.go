// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

const headerLine = "timestamp,device,worker_instance,duration_ms,packet_id,layer_idx,operation,success,memory_used_mb,error_message\n"

func TestEachRowIsWrittenImmediately(t *testing.T) {
	s := openTest(t, t.TempDir())
	want := headerLine
	if got := read(t, s.files.csv); got != want {
		t.Fatalf("before the first packet:\n%s", got)
	}
	steps := []struct {
		packet Packet
		row    string
	}{
		{
			Packet{ID: 1, Layer: -1, Operation: "embedding", Device: CPU, Duration: 1056 * time.Microsecond, Memory: 10 << 20},
			"1763337869.803673,cpu,cpu_embedding,1.056,1,-1,embedding,True,10.00,\n",
		},
		{
			Packet{ID: 2, Operation: "expert_ffn", Device: IGPU, Duration: 57 * time.Microsecond, Memory: 128<<20 + 512<<10},
			"1763337869.804673,igpu,igpu_expert_ffn_layer_0,0.057,2,0,expert_ffn,True,128.50,\n",
		},
		{
			Packet{ID: 3, Layer: 1, Operation: "attention_qkv_proj", Device: CPU, Duration: 3100 * time.Microsecond, Err: textError("iGPU out of memory")},
			"1763337869.805673,cpu,cpu_attention_layer_1,3.100,3,1,attention_qkv_proj,False,0.00,iGPU out of memory\n",
		},
	}
	for _, step := range steps {
		recordAll(t, s, step.packet)
		want += step.row
		if diff := cmp.Diff(want, read(t, s.files.csv)); diff != "" {
			t.Fatalf("after packet %d (-want +got):\n%s", step.packet.ID, diff)
		}
	}
}

func TestRowsOfABurstAreWrittenWithinADelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openTest(t, t.TempDir(), WithClock(time.Now))
		onFile := func() int { return len(rowsOf(t, read(t, s.files.csv))) }
		p := Packet{Operation: "embedding", Device: CPU}

		recordAll(t, s, p, p, p) // at the same time
		if got := onFile(); got != 1 {
			t.Errorf("%d rows immediately, want 1", got)
		}
		<-time.After(writeDelay)
		synctest.Wait()
		if got := onFile(); got != 3 {
			t.Errorf("%d rows after the delay, want 3", got)
		}
		recordAll(t, s, p, p)
		if err := s.Flush(); err != nil {
			t.Error(err)
		}
		if got := onFile(); got != 5 {
			t.Errorf("%d rows after Flush, want 5", got)
		}
		recordAll(t, s, p)
		closeTest(t, s)
		if got := onFile(); got != 6 {
			t.Errorf("%d rows after Close, want 6", got)
		}
	})
}

func TestRowsOfABurstAreBounded(t *testing.T) {
	s := openTest(t, t.TempDir(), WithClock(func() time.Time { return epoch }))
	for range 10_000 {
		recordAll(t, s, Packet{Operation: "embedding", Device: CPU})
		s.mu.Lock()
		waiting := len(s.rows.waiting)
		s.mu.Unlock()
		if waiting > writeSize {
			t.Fatalf("%d bytes are waiting", waiting)
		}
	}
}

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

func TestCSVFieldsAreQuotedWhenNecessary(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "",
		"iGPU out of memory":   "iGPU out of memory",
		"a,b":                  `"a,b"`,
		`say "no"`:             `"say ""no"""`,
		`"`:                    `""""`,
		"two\nlines":           "\"two\nlines\"",
		"carriage\rreturn":     "\"carriage\rreturn\"",
		" space and 'quote' ":  " space and 'quote' ",
		"Gerät nicht gefunden": "Gerät nicht gefunden",
	} {
		if got := string(appendField(nil, text)); got != want {
			t.Errorf("%q is written as %s, want %s", text, got, want)
		}
	}
}

func TestCSVRoundTripsAnyText(t *testing.T) {
	s := openTest(t, t.TempDir())
	texts := []string{"plain", `a "b", c`, "two\nlines", "ends in newline\n", "\xff\xfe not UTF-8", "nul\x00", "=1+1", "é世界"}
	for i, text := range texts {
		recordAll(t, s, Packet{ID: int64(i), Operation: text, Device: text, Err: textError(text)})
	}
	closeTest(t, s)
	rows := rowsOf(t, read(t, s.files.csv))
	if len(rows) != len(texts) {
		t.Fatalf("%d rows, want %d", len(rows), len(texts))
	}
	for i, r := range rows {
		want := clean(texts[i])
		if r.Operation != want || r.Device != want || r.Error != want || r.PacketID != int64(i) {
			t.Errorf("packet %d came back as %+v, want %q", i, r, want)
		}
	}
	if report, err := Analyze(s.files.csv); err != nil || report.Written == nil {
		t.Errorf("analyze: %v, summary %v", err, report.WrittenErr)
	}
}

// Recording the packets of upstream's sessions reproduces upstream's rows, except for
// the seventh decimal of timestamps.
func TestCSVOfRealSessionsIsReproduced(t *testing.T) {
	for _, name := range upstream {
		t.Run(name, func(t *testing.T) {
			original := read(t, upstreamPath(name+".csv"))
			s := openTest(t, t.TempDir())
			for _, r := range rowsOf(t, original) {
				if err := s.Record(t.Context(), packetOf(r)); err != nil {
					t.Fatal(err)
				}
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

func TestCSVReadsLFAndCRLF(t *testing.T) {
	for _, name := range upstream {
		lf := read(t, upstreamPath(name+".csv"))
		if strings.Contains(lf, "\r") {
			t.Fatal("the fixture must have LF")
		}
		crlf := strings.ReplaceAll(lf, "\n", "\r\n")
		if diff := cmp.Diff(rowsOf(t, lf), rowsOf(t, crlf)); diff != "" {
			t.Errorf("%s: rows differ between LF and CRLF:\n%s", name, diff)
		}
	}
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
