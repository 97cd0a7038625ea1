// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

func TestTableMatchesTheGoldenFiles(t *testing.T) {
	for _, size := range [][2]int{{180, 16}, {160, 16}, {120, 16}, {80, 16}, {60, 12}} {
		m := screenOf(t, size[0], size[1], 8, &agents{make: mixed})
		golden(t, fmt.Sprintf("table_%d.txt", size[0]), text(t, m))
	}
}

func TestDetailMatchesTheGoldenFiles(t *testing.T) {
	for _, tt := range []struct {
		name  string
		width int
		down  int
	}{{"prefill", 140, 7}, {"kv_offload", 140, 6}, {"exited", 140, 5}, {"canary", 90, 1}} {
		m := screenOf(t, tt.width, 44, 40, &agents{make: mixed})
		press(m, "home")
		for range tt.down {
			press(m, "down")
		}
		press(m, "enter")
		golden(t, "detail_"+tt.name+".txt", text(t, m))
	}
}

func TestTabShowsTheNextViewOfAnAgent(t *testing.T) {
	m := screenOf(t, 100, 24, 8, &agents{make: mixed})
	press(m, "end", "enter")
	for _, want := range []string{"transfer time p50", "slowest transfers", "transfer time p50"} {
		if got := text(t, m); !strings.Contains(strings.Split(got, "\n\n")[2], want) {
			t.Errorf("missing %q in the first view:\n%s", want, got)
		}
		press(m, "tab")
	}
}

func TestStragglerIsMarked(t *testing.T) {
	m := screenOf(t, 160, 16, 8, &agents{make: func(second uint64) (list []diagnose.Agent) {
		for i := range 5 {
			list = append(list, agent(fmt.Sprintf("decode-%d", i), second, 100))
		}
		list[3].Moved[0].Seconds *= 100
		list[3].Times = times(12, 100*second)
		return list
	}})
	for line := range strings.SplitSeq(text(t, m), "\n") {
		if marked := strings.HasPrefix(line, "! "); marked != strings.Contains(line, "decode-3") || marked != strings.Contains(line, "straggler: 1% of peers") {
			t.Error(line)
		}
	}
}

// A finding that doesn't fit must leave a mark.
func TestNotesCountTheProblemsThatDoNotFit(t *testing.T) {
	problems := []fleet.Problem{{Severity: diagnose.Critical, Text: "9% fail"}, {Severity: diagnose.Warning, Text: "straggler: 10% of peers"}, {Severity: diagnose.Warning, Text: "3 torn"}}
	for width, want := range map[int]string{
		60: "9% fail · straggler: 10% of peers · 3 torn", 36: "9% fail · straggler: 10% of peers +1", 20: "9% fail +2", 8: "9% f… +2",
	} {
		if got, _ := notesCell(&fleet.Row{Problems: problems}, width); got != want {
			t.Errorf("width %d: %q, want %q", width, got, want)
		}
	}
}

// On the smallest usual terminal, the columns that show whether an agent is slow or fails stay.
func TestNarrowScreensHaveTheColumnsThatMatter(t *testing.T) {
	var list strings.Builder
	for width := 50; width < 200; width += 5 {
		m := screenOf(t, width, 24, 8, &agents{make: plainFleet})
		fmt.Fprintf(&list, "%3d %s\n", width, strings.Join(strings.Fields(strings.Split(text(t, m), "\n")[3]), " "))
	}
	golden(t, "columns.txt", list.String())
}

func TestCellsHaveTheColorsOfTheGoldenFile(t *testing.T) {
	m := screenOf(t, 200, 16, 8, &agents{make: func(second uint64) []diagnose.Agent {
		list, none := mixed(second), int64(0)
		list[2].Memory, list[3].Ring.Peak, list[3].Store = &none, 3000, false
		return list
	}})
	golden(t, "colors.txt", strings.ReplaceAll(m.View().Content, "\x1b[", "^")+"\n")
}

func TestHelpScrollsAndReturnsToThePageBefore(t *testing.T) {
	m := screenOf(t, 100, 42, 1, &agents{make: mixed})
	press(m, "?")
	golden(t, "help.txt", text(t, m))
	press(m, "?")
	if m.page != pageTable {
		t.Error("? didn't return from help")
	}
	send(m, tea.WindowSizeMsg{Width: 100, Height: 12})
	press(m, "?", "up", "pgdown", "pgdown", "pgdown", "pgdown", "pgdown", "pgdown", "down")
	if !strings.Contains(text(t, m), "five minutes.\n  esc") {
		t.Errorf("the end of help isn't visible:\n%s", text(t, m))
	}
	press(m, "esc")
	press(m, "enter", "?", "x")
	if m.page != pageDetail {
		t.Error("help didn't return to the page of the agent")
	}
}

func TestPagesFitScreensOfAllSizes(t *testing.T) {
	m := screenOf(t, 80, 24, 3, &agents{make: mixed})
	for width := 1; width < 220; width += 3 {
		for _, height := range []int{8, 9, 24, 60} {
			send(m, tea.WindowSizeMsg{Width: width, Height: height})
			for _, page := range []page{pageTable, pageDetail, pageHelp} {
				m.page = page
				if width >= 40 {
					text(t, m)
				} else {
					_ = m.View() // too small, but must not panic
				}
			}
		}
	}
}

// names returns the agents on the screen.
func names(m *Model) string {
	var list []string
	for _, r := range m.rows {
		list = append(list, r.Name)
	}
	return strings.Join(list, " ")
}

func plainFleet(second uint64) []diagnose.Agent {
	return []diagnose.Agent{agent("a", second, 10), agent("b", second, 30), agent("c", second, 20)}
}

func TestKeysSelectTheSortColumn(t *testing.T) {
	m := screenOf(t, 160, 20, 3, &agents{make: plainFleet})
	for _, tt := range []struct{ key, want string }{
		{"", "a b c"}, {"r", "c b a"}, {"right", "b c a"}, {"r", "a c b"}, {"left", "a b c"}, {"left", "a b c"},
	} {
		if tt.key != "" {
			press(m, tt.key)
		}
		if got := names(m); got != tt.want {
			t.Errorf("after %q by %s: %s, want %s", tt.key, m.key, got, tt.want)
		}
	}
	if m.key != ByProblems {
		t.Errorf("left of the first column, the key is %s", m.key)
	}
	press(m, "right", "right", "right", "right")
	send(m, tea.WindowSizeMsg{Width: 60, Height: 20}) // too narrow for the column
	press(m, "right")
	if m.key != "name" {
		t.Errorf("next to a hidden column, the key is %s", m.key)
	}
}

func TestSelectionFollowsTheAgent(t *testing.T) {
	f := &agents{make: plainFleet}
	m := screenOf(t, 160, 20, 3, f)
	press(m, "down", "right")
	if m.selected != "/run/nixl/b" || m.position() != 0 {
		t.Errorf("%s at %d", m.selected, m.position())
	}
	f.make = func(second uint64) []diagnose.Agent { return plainFleet(second)[:1] }
	send(m, m.next())
	if m.selected != "/run/nixl/a" {
		t.Errorf("after the agent was removed, %s is selected", m.selected)
	}
}

// Problems move agents to the fleet. Until the user selects an agent, enter opens the first one.
func TestEnterOpensTheFirstRow(t *testing.T) {
	f := &agents{make: plainFleet}
	m := screenOf(t, 160, 20, 1, f)
	f.make = func(second uint64) []diagnose.Agent {
		list := plainFleet(second)
		list[2].Ring.Saturations = second
		return list
	}
	m.key = ByProblems
	send(m, m.next())
	if got := names(m); got != "c a b" {
		t.Fatal(got)
	}
	press(m, "enter")
	if m.selected != "/run/nixl/c" {
		t.Errorf("%s is open", m.selected)
	}
	press(m, "esc")
	m.key = "name"
	send(m, m.next())
	if m.selected != "/run/nixl/c" || m.position() != 2 {
		t.Errorf("%s at %d is selected", m.selected, m.position())
	}
}

func TestNoteShowsItsNumberInEightyColumns(t *testing.T) {
	f := &agents{make: func(second uint64) (list []diagnose.Agent) {
		for i := range uint64(5) {
			a := agent(fmt.Sprintf("worker-%d", i), second, 100)
			if i == 4 {
				a.Moved[0].Seconds *= 8
				a.Times = times(9, 100*second)
			}
			list = append(list, a)
		}
		return list
	}}
	m := screenOf(t, 80, 24, 5, f)
	if !regexp.MustCompile(`straggler: [0-9.]+%`).MatchString(text(t, m)) {
		t.Error(text(t, m))
	}
}

func TestPageOfARemovedAgentCloses(t *testing.T) {
	f := &agents{make: plainFleet}
	m := screenOf(t, 160, 30, 3, f)
	press(m, "down", "enter")
	if !strings.Contains(text(t, m), "b · layout v4") {
		t.Error(text(t, m))
	}
	press(m, "down")
	if !strings.Contains(text(t, m), "c · layout v4") {
		t.Error(text(t, m))
	}
	f.make = func(second uint64) []diagnose.Agent { return plainFleet(second)[:2] }
	send(m, m.next())
	if m.page != pageTable {
		t.Error("the page of the removed agent is still open")
	}
	press(m, "enter", "esc")
	if m.page != pageTable {
		t.Error("esc didn't return to the table")
	}
}

func TestTypingAFilterSelectsAgents(t *testing.T) {
	m := screenOf(t, 100, 16, 8, &agents{make: mixed})
	press(m, "/", "D", "E", "x", "backspace")
	golden(t, "filter.txt", text(t, m))
	press(m, "q") // doesn't quit
	if got := names(m); got != "" || !strings.Contains(text(t, m), `name that contains "DEq"`) {
		t.Errorf("%q\n%s", got, text(t, m))
	}
	press(m, "backspace", "enter")
	if got := names(m); got != "decode-2 decode-10" || m.typing {
		t.Errorf("%q", got)
	}
	press(m, "!")
	if got := names(m); got != "" {
		t.Errorf("with problems: %q", got)
	}
	press(m, "esc", "!")
	if got := names(m); got != "bench-0 canary eval \x1b[31m kv-offload-0" {
		t.Errorf("all with problems: %q", got)
	}
	press(m, "esc", "/", "z", "esc")
	if len(m.rows) != 8 || m.typing {
		t.Errorf("%d rows after esc", len(m.rows))
	}
	press(m, "/", "backspace", "d", "down")
	if m.typing || m.position() != 1 {
		t.Errorf("an arrow key while typing selected %d", m.position())
	}
}

func TestTableScrollsToTheSelection(t *testing.T) {
	m := screenOf(t, 100, 16, 2, &agents{make: func(second uint64) (list []diagnose.Agent) {
		for i := range 100 {
			list = append(list, agent(fmt.Sprintf("a-%d", i), second, 1))
		}
		return list
	}})
	for _, tt := range []struct {
		keys          []string
		first, marked int
	}{
		{[]string{"down"}, 0, 1},
		{[]string{"pgdown"}, 2, 11},
		{[]string{"end"}, 90, 99},
		{[]string{"pgup", "up"}, 88, 88},
		{[]string{"j", "k", "k"}, 87, 87},
		{[]string{"g", "up"}, 0, 0},
		{[]string{"G", "down"}, 90, 99},
	} {
		press(m, tt.keys...)
		if m.offset != tt.first || m.position() != tt.marked {
			t.Errorf("after %v: row %d is selected, row %d is first", tt.keys, m.position(), m.offset)
		}
	}
	send(m, tea.MouseWheelMsg{Button: tea.MouseWheelUp}, tea.WindowSizeMsg{Width: 100, Height: 200})
	if m.offset != 0 || m.position() != 96 || strings.Contains(text(t, m), "of 100") {
		t.Errorf("on a large screen: row %d is selected, row %d is first", m.position(), m.offset)
	}
	send(m, tea.MouseWheelMsg{Button: tea.MouseWheelDown}, tea.WindowSizeMsg{Width: 100, Height: 16})
	if !strings.Contains(text(t, m), "91–100 of 100") {
		t.Error(text(t, m))
	}
}

func TestPausedScreenDoesNotChange(t *testing.T) {
	f := &agents{make: plainFleet}
	m := screenOf(t, 120, 20, 3, f)
	press(m, "space")
	before := text(t, m)
	if !strings.Contains(before, "paused") || send(m, m.next()) == nil {
		t.Errorf("paused screen takes no more samples:\n%s", before)
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
	press(m, "enter", "down", "end", "esc")
	send(m, m.next())
	golden(t, "empty.txt", text(t, m))
	m = screenOf(t, 70, 14, 0, f)
	send(m, frameMsg{err: errors.New("telemetry directory can't be read")})
	golden(t, "trouble.txt", text(t, m))
}

// A file system that hangs, for example, says nothing about the agents.
func TestScreenSaysSinceWhenThereIsNoData(t *testing.T) {
	m := screenOf(t, 100, 16, 8, &agents{make: plainFleet})
	send(m, frameMsg{err: errors.New("it hangs")}, frameMsg{err: errors.New("it hangs")})
	if got := text(t, m); !strings.Contains(got, "no data since 08:00:07: it hangs") || len(m.rows) != 3 {
		t.Error(got)
	}
	send(m, frameMsg{err: io.EOF}, m.next())
	if got := text(t, m); strings.Contains(got, "no data since") {
		t.Error(got)
	}
}

func TestQuitKeysWorkOnAllPages(t *testing.T) {
	for _, keys := range [][]string{{"q"}, {"ctrl+c"}, {"enter", "q"}, {"?", "q"}, {"/", "ctrl+c"}} {
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

func TestScreenUsesOnlyStandardColors(t *testing.T) {
	content := screenOf(t, 160, 16, 8, &agents{make: mixed}).View().Content
	for _, sequence := range []string{"\x1b[38;", "\x1b[48;"} {
		if strings.Contains(content, sequence) {
			t.Errorf("a color isn't standard: %q", sequence)
		}
	}
}

func TestSortOrdersRowsByKeyThenName(t *testing.T) {
	row := func(name, layout string, rates fleet.Rates) *fleet.Row {
		return &fleet.Row{Agent: &diagnose.Agent{Identity: diagnose.Identity{ID: name, Name: name}, Path: name, Layout: layout}, Rates: rates}
	}
	rows := []*fleet.Row{
		row("c", "v1", fleet.Rates{Out: 1, P50: math.NaN()}), row("a10", "v4", fleet.Rates{Out: 3, P50: 2}), row("a2", "v4", fleet.Rates{Out: 3, P50: 1}),
	}
	for _, tt := range []struct {
		key     string
		reverse bool
		want    string
	}{
		{"name", false, "a2 a10 c"},
		{"name", true, "c a10 a2"},
		{"out", false, "a2 a10 c"},
		{"out", true, "c a2 a10"},
		{"p50", false, "a10 a2 c"},
		{"p50", true, "a2 a10 c"},
		{"layout", false, "c a2 a10"},
		{"reader", false, "a2 a10 c"},
		{ByProblems, false, "c a10 a2"},
		{ByProblems, true, "a2 a10 c"},
	} {
		m := &Model{rows: slices.Clone(rows)}
		Sort(m.rows, tt.key, tt.reverse)
		if got := names(m); got != tt.want {
			t.Errorf("%s, reverse %v: %s, want %s", tt.key, tt.reverse, got, tt.want)
		}
	}
}
