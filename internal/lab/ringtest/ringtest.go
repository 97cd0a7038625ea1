// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package ringtest provides tests with rings that real NIXL code wrote, and with broken
// rings. It decodes the header independently of package ringbuf, so that tests of ringbuf
// compare two implementations.
package ringtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// Case is a ring of testdata/rings, and its content according to its JSON file.
type Case struct {
	Name string `json:"-"` // path below testdata/rings, without extension: v1.4.0/full_cap8
	File string `json:"-"` // the fixture itself; never consume it, use [Copy]

	Note            string  `json:"note"`
	Version         int32   `json:"version"`
	ExpectedVersion int32   `json:"expected_version"`
	Capacity        uint64  `json:"capacity"`
	Mask            uint64  `json:"mask"`
	WritePos        uint64  `json:"write_pos"`
	ReadPos         uint64  `json:"read_pos"`
	Pending         []Event `json:"pending"`
}

// Event is a pending event. Fields that the ring's layout lacks are nil or 0.
type Event struct {
	Slot            uint64  `json:"slot"`
	TimestampMicros uint64  `json:"timestamp_us"`
	Category        *int32  `json:"category"`
	Type            *uint32 `json:"event_type"`
	Name            string  `json:"event_name"` // unknown_event for every type that NIXL doesn't know
	Value           uint64  `json:"value"`
}

// Readable reports whether a reader can use the ring. The other rings result from an
// invalid buffer size.
func (c Case) Readable() bool { return c.Version != 0 && c.Capacity > 1 }

// Reported reports whether a receiver reports the ring although no process has it open: it
// has unread events.
func (c Case) Reported() bool { return c.Readable() && len(c.Pending) > 0 }

// Agent reports whether a real agent wrote the ring, rather than a program that pushed
// chosen events with NIXL's code.
func (c Case) Agent() bool { return strings.HasPrefix(c.Name, "real-agent/") }

// Cases returns all rings of testdata/rings, sorted by name.
func Cases(tb testing.TB) []Case {
	tb.Helper()
	root := filepath.Join(Root(tb), "testdata", "rings")
	files, err := filepath.Glob(filepath.Join(root, "*", "*.ring"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no rings below %s: %v", root, err)
	}
	cases := make([]Case, 0, len(files))
	for _, file := range files {
		rel, err := filepath.Rel(root, file)
		must.OK(tb, err)
		c := Case{Name: strings.TrimSuffix(filepath.ToSlash(rel), ".ring"), File: file}
		text, err := os.ReadFile(strings.TrimSuffix(file, ".ring") + ".json")
		must.OK(tb, err)
		if err := json.Unmarshal(text, &c); err != nil {
			tb.Fatalf("%s: %v", c.Name, err)
		}
		cases = append(cases, c)
	}
	return cases
}

// Find returns one ring of testdata/rings by its name.
func Find(tb testing.TB, name string) Case {
	tb.Helper()
	for _, c := range Cases(tb) {
		if c.Name == name {
			return c
		}
	}
	tb.Fatalf("there is no ring %q in testdata/rings", name)
	return Case{}
}

// Copy copies a ring to a temporary directory and returns the path.
func Copy(tb testing.TB, c Case) string {
	tb.Helper()
	return CopyTo(tb, c, filepath.Join(tb.TempDir(), filepath.Base(c.Name)))
}

// CopyTo copies a ring to path and returns it.
func CopyTo(tb testing.TB, c Case, path string) string {
	tb.Helper()
	b, err := os.ReadFile(c.File)
	must.OK(tb, err)
	must.OK(tb, os.WriteFile(path, b, 0o600))
	return path
}

// Root returns the top directory of the repository: the closest parent directory with
// testdata/rings.
func Root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	must.OK(tb, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "testdata", "rings")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			tb.Fatal("no testdata/rings above the test's directory")
		}
		dir = up
	}
}
