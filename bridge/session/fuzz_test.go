// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// Reading a CSV never panics. A truncated file has the same leading rows as the whole
// file. If a file can be read, Recover writes a summary that is valid JSON.
func FuzzReadRows(f *testing.F) {
	f.Add([]byte(headerLine), uint16(3))
	f.Add([]byte(headerLine+"1.5,cpu,w,1.0,1,0,op,True,0.00,\n1.6,cpu,w,1.0,1,0,op,False,0.00,\"a\nb\"\n"), uint16(160))
	f.Add([]byte(strings.ReplaceAll(headerLine+"1.5,igpu,w,1.0,1,-1,expert,True,0.00,x\n", "\n", "\r\n")), uint16(140))
	f.Add([]byte(headerLine+"1.5,cpu,w,1e300,1,0,op,True,0.00,\n"), uint16(0))
	f.Add([]byte("\uFEFF"+strings.ReplaceAll(headerLine, ",", ";")+"1,5;cpu;w;1,0;1;0;op;TRUE;0,00\r\n"), uint16(130))
	for _, name := range upstream {
		b, err := os.ReadFile(upstreamPath(name + ".csv"))
		must.OK(f, err)
		f.Add(b[:min(len(b), 2000)], uint16(700))
	}
	f.Fuzz(func(t *testing.T, content []byte, at uint16) {
		ignore := func(SkippedRow) {}
		var rows []Row
		if err := readRows(bytes.NewReader(content), int64(len(content)), func(r *Row) { rows = append(rows, *r) }, ignore); err != nil {
			return
		}
		n := 0
		part := content[:min(int(at), len(content))]
		err := readRows(bytes.NewReader(part), int64(len(part)), func(r *Row) {
			if n >= len(rows) || *r != rows[n] {
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
	if rows == 0 && errors.Is(err, ErrFormat) {
		return
	}
	must.OK(t, err)
	if got := report.Summary.TotalPackets; got != rows {
		t.Fatalf("%d packets of %d rows", got, rows)
	}
	if b := read(t, report.Summary.JSONSummary); !json.Valid([]byte(b)) {
		t.Fatalf("not JSON: %s", b)
	}
	_ = report.String()
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
