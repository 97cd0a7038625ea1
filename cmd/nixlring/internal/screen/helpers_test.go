// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/semconv"
)

var update = flag.Bool("update", false, "update the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// begin is the time of the first frame.
var begin = time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)

// agents returns frames, one second apart.
type agents struct {
	n    uint64
	make func(second uint64) []diagnose.Agent
}

func (f *agents) next() (*diagnose.Frame, error) {
	frame := &diagnose.Frame{Time: begin.Add(time.Duration(f.n) * time.Second), Agents: f.make(f.n)}
	slices.SortFunc(frame.Agents, func(a, b diagnose.Agent) int { return strings.Compare(a.ID, b.ID) })
	f.n++
	return frame, nil
}

// times returns a histogram with values in three buckets.
func times(first int, n uint64) diagnose.Histogram {
	bounds := semconv.TransferDuration.Bounds
	counts := make([]uint64, len(bounds)+1)
	counts[first], counts[first+1], counts[first+3] = 2*n, 7*n, n
	return diagnose.Histogram{Bounds: bounds, Counts: counts}
}

// worker returns a healthy agent with a number of transfers per second.
func worker(name string, second, perSecond uint64) diagnose.Agent {
	n, memory := second*perSecond, int64(79<<30)
	return diagnose.Agent{
		Identity: diagnose.Identity{ID: "/run/nixl/" + name, Name: name}, Path: "/run/nixl/" + name, Layout: "v4", Up: diagnose.Yes, Memory: &memory,
		Moved:  [2]diagnose.Moved{{Bytes: 5 << 20 * n, Transfers: n, Seconds: 400e-6 * float64(n)}, {Bytes: 3 << 20 * n}},
		Events: 4 * n, Times: times(6, n),
		Ring: &diagnose.Ring{Capacity: 4096, Peak: int(perSecond / 2), Consumer: &diagnose.Consumer{PID: 4321, Name: "otelcol-nixl"}},
	}
}

// mixed returns agents with and without problems.
func mixed(second uint64) []diagnose.Agent {
	full := worker("kv-offload-0", second, 2500)
	full.Ring.Capacity, full.Ring.Peak = 512, 511
	full.Ring.Saturations, full.Ring.Torn, full.Dropped = 9*second, 2*second, 31*second

	failing := worker("canary", second, 40)
	failing.Errors = map[string]uint64{"backend": 9 * second, "canceled": second}

	unread := worker("bench-0", second, 20)
	unread.Ring.Consumer, unread.Ring.Peak = nil, int(min(80*second, 4095))

	foreign := worker(`"eval \x1b[31m"`, second, 5)
	foreign.Ring.Consumer, foreign.Layout, foreign.Up = nil, "v2", diagnose.Unknown

	exited := worker("exited", 0, 0)
	exited.Up, exited.Memory, exited.Layout, exited.Ring.Consumer = diagnose.No, nil, "v1", nil

	prefill := worker("prefill-0", second, 900+second)
	prefill.Attributes = map[string]string{
		"service.name": "prefill", "k8s.pod.uid": "0f6d8a52-7a3b-4f2e-9d6a-1c2b3d4e5f60", "k8s.container.name": "vllm", "nixl.local_rank": "3",
	}
	return []diagnose.Agent{
		unread, failing, worker("decode-2", second, 300), worker("decode-10", second, 310),
		foreign, exited, full, prefill,
	}
}

// screenOf returns a screen after some seconds.
func screenOf(t *testing.T, width, height int, seconds int, f *agents) *Model {
	t.Helper()
	m := New(Config{
		Name: "/run/nixl", Window: 5 * time.Second, Sort: "agent", Next: f.next, Empty: "no ring in /run/nixl\n\n  NIXL_TELEMETRY_ENABLE=y\n",
	})
	send(m, tea.WindowSizeMsg{Width: width, Height: height})
	for range seconds {
		send(m, m.next())
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
	"space": {Code: tea.KeySpace, Text: " "}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+f": {Code: 'f', Mod: tea.ModCtrl}, "ctrl+b": {Code: 'b', Mod: tea.ModCtrl},
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
