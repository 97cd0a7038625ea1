// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

var update = flag.Bool("update", false, "update the golden files")

// result is the result of a command.
type result struct {
	code     int
	out, err string
}

// nixlring runs the program with environment variables.
func nixlring(ctx context.Context, env map[string]string, args ...string) result {
	return runWith(ctx, world{now: time.Now, proc: "/proc", env: func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}}, args...)
}

// nixlringAt runs the program with a fixed time.
func nixlringAt(ctx context.Context, now time.Time, args ...string) result {
	return runWith(ctx, world{now: func() time.Time { return now }, proc: "/proc"}, args...)
}

func runWith(ctx context.Context, w world, args ...string) result {
	var out, errs messages
	w.out, w.err = &out, &errs
	code := run(ctx, w, args)
	return result{code, out.String(), errs.String()}
}

// messages are what a program prints, from any goroutine, as to [os.Stderr].
type messages struct {
	mu   sync.Mutex
	text strings.Builder
}

func (m *messages) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.text.Write(p)
}

func (m *messages) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.text.String()
}

// rings creates a directory with two rings, the ring of an agent that failed to start, and a
// text file. It is also the working directory of the test.
func rings(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	for name, layout := range map[string]ringbuf.Layout{"decode": ringbuf.V1, "pre\nfill": ringbuf.V4} {
		w, err := ringbuf.Create(name, layout, 16)
		must.OK(t, err)
		for range 6 {
			must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeErrBackend, 1)))
		}
		must.OK(t, w.Close())
	}
	ringtest.Make(t, "failed", ringtest.Header{Capacity: 12, Mask: 11}, 12*16)
	must.OK(t, os.WriteFile("letter", []byte("Dear Sir or Madam, this is not a ring but a letter."), 0o644))
	hours := time.Now().Add(-3*time.Hour - 30*time.Minute)
	for _, name := range []string{"decode", "pre\nfill", "failed", "letter"} {
		must.OK(t, os.Chtimes(name, hours, hours))
	}
	return dir
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must.OK(t, err)
	return b
}

// golden compares text with a golden file or, with -update, writes the file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must.OK(t, os.MkdirAll("testdata", 0o755))
		must.OK(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	must.OK(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (to update it, run go test -update):\n%s", path, diff)
	}
}

func TestHelpMatchesTheGoldenFiles(t *testing.T) {
	for name, args := range map[string][]string{
		"help.txt":          {"--help"},
		"help_inspect.txt":  {"inspect", "--help"},
		"help_ls.txt":       {"ls", "--help"},
		"help_read.txt":     {"read", "--help"},
		"help_record.txt":   {"record", "--help"},
		"help_replay.txt":   {"replay", "--help"},
		"help_analyze.txt":  {"session", "analyze", "--help"},
		"help_recover.txt":  {"session", "recover", "--help"},
		"help_simulate.txt": {"simulate", "--help"},
		"help_web.txt":      {"web", "--help"},
		"help_why.txt":      {"why", "--help"},
		"help_slow.txt":     {"slow", "--help"},
	} {
		r := nixlring(t.Context(), nil, args...)
		if r.code != exitOK || r.err != "" {
			t.Errorf("%v: exit code %d, %s", args, r.code, r.err)
		}
		golden(t, name, r.out)
		for line := range strings.Lines(r.out) {
			if strings.HasSuffix(line, " \n") {
				t.Errorf("%s: space at the end of %q", name, line)
			}
		}
	}
	if got, want := nixlring(t.Context(), nil).out, nixlring(t.Context(), nil, "--help").out; got != want {
		t.Errorf("without a command: %q", got)
	}
}

func TestVersionFlagPrintsOneLine(t *testing.T) {
	r := nixlring(t.Context(), nil, "--version")
	if r.code != exitOK || !strings.HasPrefix(r.out, "nixlring ") || strings.Count(r.out, "\n") != 1 {
		t.Errorf("%+v", r)
	}
}

func TestInvalidCommandLinesAreUsageErrors(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		want string
		args []string
	}{
		{`unknown command "simulat"; did you mean simulate?`, []string{"simulat"}},
		{`unknown command "frobnicate"`, []string{"frobnicate"}},
		{"unknown flag: --what", []string{"--what"}},
		{"unknown flag: --what", []string{"ls", "--what"}},
		{"must be one of text, json", []string{"ls", "--output", "xml"}},
		{"must be one of text, json", []string{"simulate", dir, "--output", "csv"}},
		{"missing PATH of a ring", []string{"read"}},
		{`unknown category "LUCK"`, []string{"read", dir, "--category", "luck"}},
		{"--interval 0s", []string{"read", dir, "--interval", "0"}},
		{"csv supports one ring only", []string{"read", dir, dir, "-o", "csv"}},
		{"got 2 arguments; usage: nixlring simulate DIR", []string{"simulate", dir, dir}},
		{"got 0 arguments; usage: nixlring inspect", []string{"inspect"}},
		{"--for -1s", []string{"inspect", dir, "--for", "-1s"}},
		{"missing FILE to record to", []string{"record"}},
		{"--duration -1s", []string{"record", "x", dir, "-d", "-1s"}},
		{"--interval 0s", []string{"record", "x", dir, "--interval", "0"}},
		{"must be one of text, json", []string{"session", "analyze", "-o", "csv"}},
		{"--listen 9470: must be an address and a port", []string{"web", dir, "--listen", "9470"}},
		{"--run-interval 0s", []string{"web", dir, "--run-interval", "0"}},
		{"got 2 arguments; usage: nixlring web [DIR | RECORDING]", []string{"web", dir, dir}},
		{"--slow-transfer -1s", []string{"slow", dir, "--slow-transfer", "-1s"}},
		{"--min-throughput -1", []string{"slow", dir, "--min-throughput", "-1"}},
		{"no condition for slow transfers", []string{"slow", dir, "--slow-transfer", "0"}},
		{"--duration -1s", []string{"slow", dir, "-d", "-1s"}},
		{"--run-interval 0s", []string{"slow", dir, "--run-interval", "0"}},
		{"got 2 arguments; usage: nixlring slow [DIR | RECORDING]", []string{"slow", dir, dir}},
		{"--speed 0", []string{"replay", "x", dir, "--speed", "0"}},
		{"--speed NaN", []string{"replay", "x", dir, "--speed", "NaN"}},
		{"got 0 arguments; usage: nixlring replay", []string{"replay"}},
		{"missing DIR to create rings in", []string{"replay", "x"}},
		{"missing DIR to create rings in", []string{"simulate"}},
		{"--layout: unknown layout", []string{"simulate", dir, "--layout", "v9"}},
		{`--scenario: unknown scenario "peace"`, []string{"simulate", dir, "--scenario", "peace"}},
		{"--agents 0", []string{"simulate", dir, "--agents", "0"}},
		{"--rate -1", []string{"simulate", dir, "--rate", "-1"}},
		{"--rate NaN", []string{"simulate", dir, "--rate", "NaN"}},
		{"--duration -1s", []string{"simulate", dir, "--duration", "-1s"}},
		{"--capacity 12", []string{"simulate", dir, "--capacity", "12"}},
		{"--capacity 0", []string{"simulate", dir, "--capacity", "0"}},
		{"--run-interval 0s", []string{"simulate", dir, "--run-interval", "0"}},
		{"--error-rate 2", []string{"simulate", dir, "--error-rate", "2"}},
		{"--restart-every 1ms", []string{"simulate", dir, "--restart-every", "1ms"}},
		{"--name", []string{"simulate", dir, "--name", "a/b"}},
		{"never happen", []string{"simulate", dir, "--rate", "0", "--transfers", "5"}},
	} {
		r := nixlring(t.Context(), nil, tt.args...)
		if r.code != exitUsage || r.out != "" || !strings.Contains(r.err, tt.want) || !strings.Contains(r.err, " --help\n") {
			t.Errorf("%v: %+v; want %q", tt.args, r, tt.want)
		}
	}
	left, err := os.ReadDir(dir)
	must.OK(t, err)
	if len(left) > 0 {
		t.Errorf("invalid command lines created %v", left)
	}
}

func TestShellCompletionOffersFlagValues(t *testing.T) {
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"v1\nv2\nv3\nv4\nmixed\n", []string{"simulate", "--layout", ""}},
		{"text\njson\n", []string{"simulate", "-o", ""}},
		{"steady\nfailing-peer\noverflow\n", []string{"simulate", "--scenario", ""}},
		{"MEMORY\nTRANSFER\nCONNECTION\nBACKEND\nERROR\nPERFORMANCE\nSYSTEM\nCUSTOM\nUNKNOWN\n", []string{"read", "--category", ""}},
		{"127.0.0.1:9470\n", []string{"web", "--listen", ""}},
		{"jsonl.zst\n:8\n", []string{"why", ""}},
		{":16\n", []string{"ls", ""}},
		{"text\njson\n", []string{"ls", "--output", ""}},
	} {
		r := nixlring(t.Context(), nil, append([]string{"__complete"}, tt.args...)...)
		if !strings.HasPrefix(r.out, tt.want) {
			t.Errorf("%v: %q", tt.args, r.out)
		}
	}
}
