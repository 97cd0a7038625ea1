// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

// Reading a CSV never panics. A truncated file has the same leading rows as the whole
// file. If a file can be read, Recover writes a summary that is valid JSON.
func FuzzReadRows(f *testing.F) {
	f.Add([]byte(headerLine), uint16(3))
	f.Add([]byte(headerLine+"1.5,cpu,w,1.0,1,0,op,True,0.00,\n1.6,cpu,w,1.0,1,0,op,False,0.00,\"a\nb\"\n"), uint16(160))
	f.Add([]byte(strings.ReplaceAll(headerLine+"1.5,igpu,w,1.0,1,-1,expert,True,0.00,x\n", "\n", "\r\n")), uint16(140))
	f.Add([]byte(headerLine+"1.5,cpu,w,1e300,1,0,op,True,0.00,\n"), uint16(0))
	for _, name := range upstream {
		b, err := os.ReadFile(upstreamPath(name + ".csv"))
		must.OK(f, err)
		f.Add(b[:min(len(b), 2000)], uint16(700))
	}
	f.Fuzz(func(t *testing.T, content []byte, at uint16) {
		ignore := func(SkippedRow) {}
		var rows []Row
		if err := readRows(bytes.NewReader(content), func(r Row) { rows = append(rows, r) }, ignore); err != nil {
			return
		}
		n := 0
		err := readRows(bytes.NewReader(content[:min(int(at), len(content))]), func(r Row) {
			if n >= len(rows) || r != rows[n] {
				t.Fatalf("row %d of the part is %+v", n, r)
			}
			n++
		}, ignore)
		if err != nil && bytes.HasPrefix(content, []byte("timestamp,")) {
			t.Fatal(err)
		}
		recoverFuzzed(t, content, int64(len(rows)))
	})
}

func recoverFuzzed(t *testing.T, content []byte, rows int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.csv")
	write(t, path, string(content))
	report, err := Recover(path, false)
	must.OK(t, err)
	if got := report.Summary.TotalPackets; got != rows {
		t.Fatalf("%d packets of %d rows", got, rows)
	}
	if b := read(t, report.Summary.JSONSummary); !json.Valid([]byte(b)) {
		t.Fatalf("not JSON: %s", b)
	}
	textOf(t, report)
}

// Reading a packet's row returns the packet's values, on one line.
func FuzzRowRoundTrip(f *testing.F) {
	f.Add("cpu", "embedding", "", -1, int64(1), int64(1056789), int64(10<<20), int64(1763318069867833), "", false)
	f.Add("\xff\xfe not UTF-8", "nul\x00", "é世界", 2, int64(2), int64(1), int64(1), int64(1), "ends in a newline\n", true)
	f.Add("igpu", "a,\"b\"\r\n", "w,1", 1<<30, int64(-1), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), "out of\nmemory", true)
	s := openTest(f, f.TempDir(), WithClock(func() time.Time { return epoch }))
	written, err := os.Open(s.files.csv)
	must.OK(f, err)
	defer written.Close()
	_, err = io.ReadAll(written) // the header
	must.OK(f, err)
	f.Fuzz(func(t *testing.T, device, operation, worker string, layer int, id, took, memory, stamp int64, message string, failed bool) {
		p := Packet{
			ID: id, Layer: layer, Operation: operation, Device: device, Worker: worker,
			Duration: time.Duration(took), Memory: memory, End: time.UnixMicro(stamp),
		}
		want := Row{
			Time: p.End, Device: clean(device), Worker: s.pointsOf(&p, "").worker, PacketID: id, Layer: layer,
			Operation: clean(operation), Success: !failed,
		}
		if failed {
			p.Err, want.Error = textError(message), clean(message)
		}
		if p.Duration >= 0 && p.Duration <= maxDuration {
			want.Duration = p.Duration.Round(time.Microsecond)
		}
		recordAll(t, s, p)
		row, err := io.ReadAll(written) // from where the last one ended
		must.OK(t, err)
		line := string(row)
		rows := rowsOf(t, headerLine+line)
		if len(rows) != 1 || strings.Count(line, "\n") != 1 || strings.Contains(line, "\r") {
			t.Fatalf("%d rows in %q", len(rows), line)
		}
		want.MemoryMB = rows[0].MemoryMB
		if max(stamp, -stamp) < 0 || max(stamp, -stamp) > 1<<50 {
			want.Time = rows[0].Time // not exact
		}
		if rows[0] != want {
			t.Fatalf("%q was read as %+v, want %+v", line, rows[0], want)
		}
	})
}

// finite doesn't change valid JSON.
func FuzzFinite(f *testing.F) {
	f.Add([]byte(`{"a": "Infinity \" NaN", "b": [1, -2.5e3, null]}`))
	f.Add([]byte(`{"a": Infinity, "b": -Infinity, "c": NaN}`))
	f.Add([]byte(`"\`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got := finite(b); json.Valid(b) && !bytes.Equal(b, got) {
			t.Fatalf("%q became %q", b, got)
		}
	})
}
