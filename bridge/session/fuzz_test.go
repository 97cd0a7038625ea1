// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"encoding/json"
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
		var rows []Row
		_, err := readRows(bytes.NewReader(content), func(r Row) { rows = append(rows, r) })

		part := content[:min(int(at), len(content))]
		n := 0
		_, partErr := readRows(bytes.NewReader(part), func(r Row) {
			if err == nil && (n >= len(rows) || r != rows[n]) {
				t.Fatalf("row %d of the part is %+v", n, r)
			}
			n++
		})
		if err == nil && partErr != nil && bytes.HasPrefix(content, []byte("timestamp,")) {
			t.Fatal(partErr)
		}
		if err != nil {
			return
		}
		recoverFuzzed(t, content, int64(len(rows)))
	})
}

func recoverFuzzed(t *testing.T, content []byte, rows int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.csv")
	write(t, path, string(content))
	s, err := Recover(path, false)
	must.OK(t, err)
	if s.TotalPackets != rows {
		t.Fatalf("%d packets of %d rows", s.TotalPackets, rows)
	}
	if b := read(t, s.JSONSummary); !json.Valid([]byte(b)) {
		t.Fatalf("not JSON: %s", b)
	}
	report, err := Analyze(path)
	must.OK(t, err)
	textOf(t, report)
}

// Reading a packet's row returns the packet's values.
func FuzzRowRoundTrip(f *testing.F) {
	f.Add("cpu", "embedding", "", -1, int64(1), int64(1056789), int64(10<<20), int64(1763318069867833), "", false)
	f.Add("\xff\xfe not UTF-8", "nul\x00", "é世界", 2, int64(2), int64(1), int64(1), int64(1), "ends in a newline\n", true)
	f.Add("igpu", "a,\"b\"\r\n", "w,1", 1<<30, int64(-1), int64(0), int64(0), int64(0), "out of\nmemory", true)
	f.Fuzz(func(t *testing.T, device, operation, worker string, layer int, id, took, memory, stamp int64, message string, failed bool) {
		p := Packet{
			ID: id, Layer: layer, Operation: operation, Device: device, Worker: worker,
			Duration: time.Duration(took & (1<<50 - 1)), Memory: memory & (1<<50 - 1),
			End: time.UnixMicro(stamp & (1<<51 - 1)),
		}
		if failed {
			p.Err = textError(message)
		} else {
			message = ""
		}
		r := newRoutes(&totals{}, false).of(&p)
		b := appendRow(header(), p.End, r.head, r.tail, &p, clean(message))

		rows := rowsOf(t, string(b))
		if len(rows) != 1 {
			t.Fatalf("%d rows in %q", len(rows), b)
		}
		got, want := rows[0], Row{
			Time: p.End, Device: asRead(device), Worker: asRead(r.worker), Duration: p.Duration.Round(time.Microsecond),
			PacketID: id, Layer: layer, Operation: asRead(operation), Success: !failed,
			MemoryMB: rows[0].MemoryMB, Error: asRead(message),
		}
		if got != want {
			t.Fatalf("%q was read as %+v, want %+v", b, got, want)
		}
	})
}

// asRead returns s as it is read from a CSV: encoding/csv converts CRLF to LF.
func asRead(s string) string { return strings.ReplaceAll(clean(s), "\r\n", "\n") }

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
