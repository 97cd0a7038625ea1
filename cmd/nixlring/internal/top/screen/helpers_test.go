// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/top"
	"github.com/nixl-otel/nixl-otel/internal/must"
)

var update = flag.Bool("update", false, "update the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

// begin is the time of the first sample.
var begin = time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)

// fleet returns samples, one second apart.
type fleet struct {
	n    uint64
	make func(second uint64) []top.Reading
}

func (f *fleet) sample() top.Sample {
	s := top.Sample{At: begin.Add(time.Duration(f.n) * time.Second), Agents: f.make(f.n)}
	f.n++
	return s
}

// times returns a histogram of times with values in three buckets.
func times(first int, n uint64) []uint64 {
	counts := make([]uint64, len(top.Bounds())+1)
	counts[first], counts[first+3], counts[first+9] = 2*n, 7*n, n
	return counts
}

// speeds returns a histogram of throughput with n values in one bucket.
func speeds(bucket int, n uint64) []uint64 {
	counts := make([]uint64, 101)
	counts[bucket] = n
	return counts
}

// agent returns a healthy agent with a number of transfers per second.
func agent(name string, second, perSecond uint64) top.Reading {
	n := second * perSecond
	return top.Reading{
		ID: "/run/nixl/" + name, Path: "/run/nixl/" + name, Name: name, Layout: "v4", Capacity: 4096, Peak: int(perSecond / 2),
		Memory: 79 << 30, Alive: procs.Yes, Lock: top.Lock{PID: 4321, Name: "otelcol-nixl"},
		Totals: top.Totals{
			Out: 5 << 20 * n, In: 3 << 20 * n, Transfers: n, Took: 400 * n, Events: 4 * n,
			Duration: times(20, n), Post: times(10, n), Throughput: speeds(60, n),
		},
	}
}

// mixed returns agents with and without problems.
func mixed(second uint64) []top.Reading {
	full := agent("kv-offload-0", second, 2500)
	full.Capacity, full.Peak = 512, 511
	full.Totals.Saturations, full.Totals.Torn, full.Totals.Dropped = 9*second, 2*second, 31*second

	failing := agent("canary", second, 40)
	failing.Totals.Errors = 4 * second
	failing.Failures = []top.Failure{{Status: "backend", Count: 3 * second}, {Status: "canceled", Count: second}}

	unread := agent("bench-0", second, 20)
	unread.Lock, unread.Peak = top.Lock{}, int(min(80*second, 4095))

	foreign := agent("eval \x1b[31m", second, 5)
	foreign.Lock, foreign.Layout, foreign.Alive = top.Lock{}, "v2", procs.Unknown

	exited := agent("exited", 0, 0)
	exited.Alive, exited.MemoryUnknown, exited.Layout, exited.Lock = procs.No, true, "v1", top.Lock{}

	prefill := agent("prefill-0", second, 900+second)
	prefill.Service = "prefill"
	prefill.Attributes = map[string]string{
		"k8s.pod.uid": "0f6d8a52-7a3b-4f2e-9d6a-1c2b3d4e5f60", "k8s.container.name": "vllm", "nixl.local_rank": "3",
	}

	return []top.Reading{
		unread, failing, agent("decode-2", second, 300), agent("decode-10", second, 310),
		foreign, exited, full, prefill,
	}
}

// slow returns the slowest transfers of an agent. All agents but one have the same.
func slow(id string) []top.Transfer {
	if id == "/run/nixl/exited" {
		return nil
	}
	return []top.Transfer{
		{At: begin.Add(time.Second), Bytes: 512 << 20, Took: 21400 * time.Microsecond, Post: 128 * time.Microsecond},
		{At: begin.Add(2 * time.Second), Receive: true, Bytes: 64 << 10, Took: 9 * time.Millisecond, Post: 4 * time.Microsecond},
	}
}

// screenOf returns a screen after some seconds.
func screenOf(t *testing.T, width, height int, seconds int, f *fleet) *Model {
	t.Helper()
	m := New(Config{
		Name: "/run/nixl", Interval: time.Second, Window: 5 * time.Second,
		Sample: f.sample, Slowest: slow, Empty: func(excluded int) string {
			if excluded > 0 {
				return fmt.Sprintf("none of %d agents matches\n", excluded)
			}
			return "no ring in /run/nixl\n\n  NIXL_TELEMETRY_ENABLE=y\n"
		},
	})
	send(m, tea.WindowSizeMsg{Width: width, Height: height})
	for range seconds {
		send(m, m.sample())
	}
	return m
}

func send(m *Model, msgs ...tea.Msg) (cmd tea.Cmd) {
	for _, msg := range msgs {
		_, cmd = m.Update(msg)
	}
	return cmd
}

// special are the keys that aren't characters.
var special = map[string]tea.KeyPressMsg{
	"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight},
	"pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown}, "home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd},
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "backspace": {Code: tea.KeyBackspace},
	"space": {Code: tea.KeySpace, Text: " "}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl},
}

// press presses keys and returns the command of the last one.
func press(m *Model, keys ...string) (cmd tea.Cmd) {
	for _, k := range keys {
		msg, ok := special[k]
		if !ok {
			msg = tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
		}
		cmd = send(m, msg)
	}
	return cmd
}

// text returns the screen without colors and trailing spaces.
func text(t *testing.T, m *Model) string {
	t.Helper()
	content := m.View().Content
	lines := strings.Split(content, "\n")
	if len(lines) != m.height {
		t.Errorf("%d lines on a screen of %d:\n%s", len(lines), m.height, ansi.Strip(content))
	}
	var b strings.Builder
	for i, line := range lines {
		if w := ansi.StringWidth(line); w > m.width {
			t.Errorf("line %d is %d wide on a screen of %d: %q", i+1, w, m.width, ansi.Strip(line))
		}
		fmt.Fprintln(&b, strings.TrimRight(ansi.Strip(line), " "))
	}
	return b.String()
}
