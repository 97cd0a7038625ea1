// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/chaos/internal/backend"
	"github.com/nixl-otel/nixl-otel/test/chaos/internal/ledger"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
)

// crowd is the number of files in the directory, the default of max_rings.
const crowd = 4096

// Half of the files aren't valid rings. The Collector reports them in a few lines, and counts all
// events of the others.
func TestDirectoryFullOfFilesIsReadWithFewLogLines(t *testing.T) {
	t.Parallel()
	rings := t.TempDir()
	want := make(map[string]ledger.Series)
	for i := range crowd / 2 {
		path, series := goodRing(t, rings, i)
		want[path] = series
		garbage[i%len(garbage)].make(t, filepath.Join(rings, fmt.Sprintf("garbage-%04d", i)))
	}
	before := garbageIn(t, rings)
	to := backend.NewHTTP(t)
	s := setup{overlays: []string{fmt.Sprintf(`
receivers:
  nixl_shm:
    directories: [%q]
    initial_delay: 0s
    collection_interval: 5s # the first collection doesn't wait for all rings on a busy machine
    metrics: {nixl.events: {enabled: true}}
    resource_attributes: {nixl.telemetry.path: {enabled: true}}
exporters:
  otlp_http: {endpoint: %q}
service: {pipelines: {metrics: {receivers: [nixl_shm], exporters: [otlp_http]}}}
`, rings, to.URL())}}
	args := s.command(t)
	begun := time.Now()
	c := launch(t, args, nil)
	c.WaitFor(t, ready)
	started := time.Since(begun)
	to.Await(t, func(got map[string]ledger.Series) string {
		if len(got) < len(want) {
			return fmt.Sprintf("%d agents are reported, want %d", len(got), len(want))
		}
		return ""
	})
	reported := time.Since(begun)
	got := to.Totals()
	for path, series := range want {
		mustBe(t, path, series, got[path])
	}
	cost := c.idleCost(t)

	lines := 0
	for _, e := range built.Entries(c.Process) {
		if strings.Contains(e.Line, "nixl_shm") {
			lines++
			t.Logf("%s: %s %s", e.Level, e.Message, e.Error)
		}
	}
	t.Logf("ready after %v, all reported after %v; then %v of CPU time per second with %d idle rings",
		started.Round(time.Millisecond), reported.Round(time.Millisecond), cost, crowd/2)
	// At most 100 lines are written in a minute, and one says how many were suppressed.
	if most := 101 * (1 + int(reported/time.Minute)); lines > most {
		t.Errorf("%d lines in the log, want at most %d", lines, most)
	}
	c.Stop(t, sigterm)
	for _, wrong := range to.Contradictions() {
		t.Error(wrong)
	}
	if after := garbageIn(t, rings); !maps.Equal(before, after) {
		t.Error("the Collector has changed files that aren't rings")
	}
}

// garbageIn returns the modes, times and contents of the files that aren't rings, by path.
func garbageIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	paths, err := filepath.Glob(filepath.Join(dir, "garbage-*"))
	must.OK(t, err)
	for _, path := range paths {
		info, err := os.Lstat(path)
		must.OK(t, err)
		all[path] = fmt.Sprint(info.Mode(), info.ModTime())
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			must.OK(t, err)
			all[path] += string(text)
		}
	}
	return all
}

// idleCost returns the CPU time that a Collector uses per second.
func (c collector) idleCost(t *testing.T) time.Duration {
	t.Helper()
	const long = 5 * time.Second
	before := c.CPU(t)
	pass(t, long)
	return (c.CPU(t) - before) / time.Duration(long.Seconds())
}

// goodRing creates a ring with its own events, and returns the resulting series.
func goodRing(t *testing.T, dir string, i int) (path string, want ledger.Series) {
	t.Helper()
	path = filepath.Join(dir, fmt.Sprintf("agent-%04d", i))
	layouts := ringbuf.Layouts()
	w, err := ringbuf.Create(path, layouts[i%len(layouts)], 64)
	must.OK(t, err)
	defer w.Close()
	for n := range 1 + i%10 { // an empty ring without an agent isn't reported
		must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, uint64(1000*i+n))))
		must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeXferTime, uint64(i+n))))
	}
	r, err := ringbuf.OpenReader(path, ringbuf.Observe)
	must.OK(t, err)
	defer r.Close()
	l := ledger.Ledger{}
	_, err = r.Read(0, func(b ringbuf.Batch) {
		for i := range b.Len() {
			e := b.Event(i)
			l.AddEvent(&e)
		}
	})
	must.OK(t, err)
	return path, l.Series()
}

// garbage are kinds of files in a telemetry directory that aren't valid rings.
var garbage = []struct {
	name string
	make func(t *testing.T, path string)
}{
	{"text", func(t *testing.T, path string) { write(t, path, bytes.Repeat([]byte("dear diary "), 500)) }},
	{"truncated ring", func(t *testing.T, path string) {
		ringtest.Make(t, path, ringtest.NewHeader(4, 1024), 100)
	}},
	{"unknown version", func(t *testing.T, path string) { ringtest.Make(t, path, ringtest.NewHeader(6, 64), 64*16) }},
	{"FIFO", func(t *testing.T, path string) { must.OK(t, syscall.Mkfifo(path, 0o600)) }},
	{"link", func(t *testing.T, path string) { must.OK(t, os.Symlink("agent-0001", path)) }},
	{"empty file", func(t *testing.T, path string) { write(t, path, nil) }},
	{"zeros", func(t *testing.T, path string) { write(t, path, make([]byte, 40+64*16)) }},
	{"directory", func(t *testing.T, path string) { must.OK(t, os.Mkdir(path, 0o700)) }},
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	must.OK(t, os.WriteFile(path, text, 0o600))
}
