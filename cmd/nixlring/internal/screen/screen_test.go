// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/lab/golden"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

func TestTableMatchesTheGoldenFiles(t *testing.T) {
	for _, size := range [][2]int{{180, 16}, {120, 16}, {80, 16}, {60, 12}} {
		m := screenOf(t, size[0], size[1], 8, &agents{make: mixed})
		golden.Compare(t, *update, fmt.Sprintf("table_%d.txt", size[0]), text(t, m))
	}
}

// A finding that doesn't fit must leave a mark.
func TestNotesCountTheProblemsThatDoNotFit(t *testing.T) {
	problems := []fleet.Problem{{Severity: diagnose.Critical, Text: "9% fail"}, {Severity: diagnose.Warning, Text: "straggler: 10% of peers"}, {Severity: diagnose.Warning, Text: "3 torn"}}
	for width, want := range map[int]string{
		60: "9% fail · straggler: 10% of peers · 3 torn", 36: "9% fail · straggler: 10% of peers +1", 20: "9% fail +2", 8: "9% f… +2", 3: " +2",
	} {
		if got, _ := notesCell(&fleet.Row{Problems: problems}, width); got != want {
			t.Errorf("width %d: %q, want %q", width, got, want)
		}
	}
}

// On the smallest usual terminal, the columns that show whether an agent is slow or fails stay.
func TestNarrowScreensHaveTheColumnsThatMatter(t *testing.T) {
	var list strings.Builder
	before := ""
	for width := 50; width < 200; width++ {
		m := screenOf(t, width, 24, 8, &agents{make: plainFleet})
		if now := strings.Join(strings.Fields(strings.Split(text(t, m), "\n")[3]), " "); now != before {
			fmt.Fprintf(&list, "%3d %s\n", width, now)
			before = now
		}
	}
	golden.Compare(t, *update, "columns.txt", list.String())
}

func TestCellsHaveTheColorsOfTheGoldenFile(t *testing.T) {
	m := screenOf(t, 200, 16, 8, &agents{make: func(second uint64) []diagnose.Agent {
		list, none := mixed(second), int64(0)
		list[2].Memory, list[2].Ring.Capacity, list[2].Ring.Peak, list[3].Ring.Peak, list[7].Store = &none, 101, 90, 3000, true
		return list
	}})
	golden.Compare(t, *update, "colors.txt", strings.ReplaceAll(m.View().Content, "\x1b[", "^")+"\n")
}

func TestScreensOfAllSizesAreFilled(t *testing.T) {
	m := screenOf(t, 80, 24, 3, &agents{make: mixed})
	for _, state := range []string{"rows", "esc /zz enter", "esc ?"} {
		press(m, strings.Fields(state)[1:]...)
		for width := 1; width < 220; width += 3 {
			for _, height := range []int{1, 8, 9, 24, 60} {
				send(m, tea.WindowSizeMsg{Width: width, Height: height})
				if width >= 40 {
					text(t, m)
				} else {
					_ = m.View() // too small, but must not panic
				}
			}
		}
	}
}

// names returns the agents that are listed.
func names(m *Model) string {
	var list []string
	for _, r := range m.rows {
		list = append(list, units.Printable(r.Name))
	}
	return strings.Join(list, " ")
}

func plainFleet(second uint64) []diagnose.Agent {
	return []diagnose.Agent{worker("a", second, 10), worker("b", second, 30), worker("c", second, 20)}
}

// The golden file has keys that are pressed one after the other, and what the screen shows then.
func TestKeysSortAndFilterAgents(t *testing.T) {
	for name, keys := range map[string]string{
		"sort":   "right left left left left h l",
		"filter": "/ D E x backspace q backspace enter ! esc ! esc / z esc ? x j",
	} {
		m := screenOf(t, 100, 20, 8, &agents{make: mixed})
		var got strings.Builder
		for _, key := range append([]string{""}, strings.Fields(keys)...) {
			if key != "" {
				press(m, key)
			}
			lines := strings.Split(strings.TrimSpace(text(t, m)), "\n")
			fmt.Fprintf(&got, "%s\n  %s\n  %s\n  %s\n", key, lines[3], names(m), lines[len(lines)-2])
		}
		golden.Compare(t, *update, "keys_"+name+".txt", got.String())
	}
}

func TestSortKeyOfAHiddenColumnGivesWayToAVisibleOne(t *testing.T) {
	m := screenOf(t, 160, 20, 3, &agents{make: plainFleet})
	m.key = "memory"
	send(m, tea.WindowSizeMsg{Width: 60, Height: 20})
	if press(m, "left"); m.key != ByProblems {
		t.Errorf("the key is %s", m.key)
	}
}

func TestTableScrolls(t *testing.T) {
	f := &agents{make: func(second uint64) (list []diagnose.Agent) {
		for i := range 100 {
			list = append(list, worker(fmt.Sprintf("a-%d", i), second, 1))
		}
		return list
	}}
	m := screenOf(t, 100, 16, 2, f)
	for _, tt := range []struct {
		keys string
		want string
	}{
		{"down", "2–11"},
		{"up up", "1–10"},
		{"pgdown", "11–20"},
		{"j ctrl+f", "22–31"},
		{"k pgup", "11–20"},
		{"ctrl+b", "1–10"},
		{"end", "91–100"},
		{"down", "91–100"},
		{"home", "1–10"},
		{"G", "91–100"},
		{"g", "1–10"},
		{"end", "91–100"},
	} {
		press(m, strings.Fields(tt.keys)...)
		if got := text(t, m); !strings.Contains(got, tt.want+" of 100\n") {
			t.Errorf("after %v, want %s:\n%s", tt.keys, tt.want, got)
		}
	}
	if send(m, m.next()); m.offset != 90 {
		t.Errorf("a frame moved the first row to %d", m.offset)
	}
	if press(m, "/", "9", "9"); m.offset != 0 || names(m) != "a-99" {
		t.Errorf("of the agents %s that match the filter, row %d is the first", names(m), m.offset)
	}
	press(m, "esc", "end")
	if send(m, tea.WindowSizeMsg{Width: 100, Height: 200}); m.offset != 0 || strings.Contains(text(t, m), "of 100") {
		t.Errorf("on a large screen, row %d is the first", m.offset)
	}
}

func TestHelpExplainsTheColumns(t *testing.T) {
	m := screenOf(t, 80, 24, 1, &agents{make: mixed})
	before := text(t, m)
	press(m, "?")
	golden.Compare(t, *update, "help.txt", text(t, m))
	if press(m, "x"); text(t, m) != before {
		t.Error(text(t, m))
	}
}

func TestPausedScreenDoesNotChange(t *testing.T) {
	f := &agents{make: plainFleet}
	m := screenOf(t, 120, 20, 3, f)
	press(m, "space")
	before := text(t, m)
	if !strings.Contains(before, "paused") || send(m, m.next()) == nil {
		t.Errorf("paused screen takes no more frames:\n%s", before)
	}
	if got := text(t, m); got != before {
		t.Errorf("paused screen changed:\n%s", got)
	}
	press(m, "space")
	send(m, m.next())
	if got := text(t, m); got == before || m.board.Rows()[0].Completed != 10 {
		t.Errorf("resumed screen didn't change:\n%s", got)
	}
}

func TestScreenExplainsThatThereAreNoAgents(t *testing.T) {
	f := &agents{make: func(uint64) []diagnose.Agent { return nil }}
	m := screenOf(t, 70, 14, 0, f)
	if !strings.Contains(text(t, m), "loading…") {
		t.Error(text(t, m))
	}
	press(m, "down", "end", "esc")
	send(m, m.next())
	golden.Compare(t, *update, "empty.txt", text(t, m))
	m = screenOf(t, 70, 14, 0, f)
	send(m, frameMsg{err: errors.New("telemetry directory can't be read")})
	golden.Compare(t, *update, "trouble.txt", text(t, m))
}

// A file system that hangs, for example, says nothing about the agents.
func TestScreenSaysSinceWhenThereIsNoData(t *testing.T) {
	m := screenOf(t, 100, 16, 8, &agents{make: plainFleet})
	send(m, frameMsg{err: errors.New("it hangs")}, frameMsg{err: errors.New("it hangs")})
	if got := text(t, m); !strings.Contains(got, "no data since 08:00:07: it hangs") || len(m.rows) != 3 {
		t.Error(got)
	}
	if send(m, m.next(), frameMsg{err: io.EOF}) != nil {
		t.Error("frames are taken after the end of a recording")
	}
	if got := text(t, m); strings.Contains(got, "no data since") {
		t.Error(got)
	}
	synctest.Test(t, func(t *testing.T) {
		begin, retry := time.Now(), send(m, frameMsg{err: errors.New("it hangs")})
		if retry(); time.Since(begin) != time.Second {
			t.Errorf("the next frame was taken after %v", time.Since(begin))
		}
	})
}

func TestScreenOfOneAgent(t *testing.T) {
	m := screenOf(t, 120, 10, 3, &agents{make: func(second uint64) []diagnose.Agent { return plainFleet(second)[:1] }})
	if got := strings.Split(text(t, m), "\n")[1]; got != " 1 agent · out 52.4 MB/s · in 31.5 MB/s · 10 transfers/s · p50 2.21 ms · p99 9.80 ms · 79.0 GiB registered" {
		t.Errorf("%q", got)
	}
	full := screenOf(t, 120, 10, 3, &agents{make: func(second uint64) []diagnose.Agent { return mixed(second)[6:7] }})
	if got := text(t, full); !strings.Contains(got, " 1 agent · 1 with problems · ") {
		t.Error(got)
	}
	if v := m.View(); !v.AltScreen || v.WindowTitle != "nixlring top /run/nixl" {
		t.Errorf("%+v", v)
	}
}

func TestTableAsText(t *testing.T) {
	b := fleet.NewBoard(5 * time.Second)
	f := &agents{make: mixed}
	for range 8 {
		frame, _ := f.next()
		b.Add(frame)
	}
	titles, cells := Table(b.Rows())
	got := strings.Join(titles, "|") + "\n"
	for _, line := range cells {
		got += strings.Join(line, "|") + "\n"
	}
	golden.Compare(t, *update, "text.txt", got)
}

func TestQuitKeysWork(t *testing.T) {
	for _, keys := range [][]string{{"q"}, {"ctrl+c"}, {"?", "q"}, {"/", "ctrl+c"}} {
		cmd := press(screenOf(t, 80, 20, 1, &agents{make: plainFleet}), keys...)
		if cmd == nil {
			t.Errorf("%v didn't quit", keys)
			continue
		}
		if _, ok := cmd().(tea.QuitMsg); !ok {
			t.Errorf("%v didn't quit", keys)
		}
	}
}

func TestSortOrdersRowsByKeyThenName(t *testing.T) {
	row := func(name string, rates fleet.Rates) *fleet.Row {
		return &fleet.Row{Agent: &diagnose.Agent{Identity: diagnose.Identity{ID: name, Name: name}}, Rates: rates}
	}
	rows := []*fleet.Row{
		row("c", fleet.Rates{Out: 1, P50: math.NaN(), Speed: math.NaN()}), // its memory is unknown
		row("a10", fleet.Rates{Out: 3, P50: 2, Speed: 2}), row("a2", fleet.Rates{Out: 3, P50: 1, Speed: 1}),
	}
	few, much := int64(1), int64(2)
	rows[1].Memory, rows[2].Memory = &few, &much
	for key, want := range map[string]string{
		"memory": "a2 a10 c", "agent": "a2 a10 c", "out": "a2 a10 c", "p50": "a10 a2 c", "speed": "a2 a10 c", ByProblems: "c a10 a2",
	} {
		m := &Model{rows: slices.Clone(rows)}
		Sort(m.rows, key)
		if got := names(m); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}
