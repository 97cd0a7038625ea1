// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package screen shows a [fleet.Board] in a terminal, with Bubble Tea.
//
// It uses only the sixteen standard colors of the terminal, so it works on dark and light
// backgrounds. No information depends on color alone, so that NO_COLOR works.
package screen

import (
	"errors"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// Config configures a [Model].
type Config struct {
	Name   string        // what is watched
	Window time.Duration // of rates and quantiles
	Sort   string        // one of [Keys]
	// Next waits for the next frame. It isn't called concurrently.
	Next  func() (*diagnose.Frame, error)
	Empty string // text if there are no agents
}

// Model is the state of the screen.
type Model struct {
	cfg           Config
	board         *fleet.Board
	width, height int

	paused   bool
	help     bool // show what the columns mean
	key      string
	filter   string
	typing   bool // the user is typing the filter
	problems bool // show only agents with problems
	rows     []*fleet.Row
	offset   int // first visible row
}

// New returns a screen without frames.
func New(cfg Config) *Model {
	return &Model{cfg: cfg, board: fleet.NewBoard(cfg.Window), key: cfg.Sort, width: 80, height: 24}
}

// frameMsg is a frame, or why there is none.
type frameMsg struct {
	frame *diagnose.Frame
	err   error
}

// Init implements [tea.Model].
func (m *Model) Init() tea.Cmd { return m.next }

// next waits for the next frame.
func (m *Model) next() tea.Msg {
	f, err := m.cfg.Next()
	return frameMsg{f, err}
}

// Update handles a message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.scroll(0)
	case frameMsg:
		switch {
		case errors.Is(msg.err, io.EOF): // the end of a recording stays on the screen
			return m, nil
		case msg.err != nil:
			m.board.Fail(msg.err)
			return m, tea.Tick(time.Second, func(time.Time) tea.Msg { return m.next() })
		case !m.paused:
			m.board.Add(msg.frame)
			m.arrange()
		}
		return m, m.next
	case tea.KeyPressMsg:
		return m, m.press(msg)
	}
	return m, nil
}

// press handles a key.
func (m *Model) press(k tea.KeyPressMsg) tea.Cmd {
	switch key := k.String(); {
	case key == "ctrl+c", key == "q" && !m.typing:
		return tea.Quit
	case m.typing:
		m.typeFilter(key, k.Text)
	case m.help:
		m.help = false
	default:
		m.command(key)
	}
	return nil
}

// command handles a key that is a command.
func (m *Model) command(key string) {
	switch key {
	case "up", "k":
		m.scroll(-1)
	case "down", "j":
		m.scroll(1)
	case "pgup", "ctrl+b":
		m.scroll(-m.body())
	case "pgdown", "ctrl+f":
		m.scroll(m.body())
	case "home", "g":
		m.scroll(-len(m.rows))
	case "end", "G":
		m.scroll(len(m.rows))
	case "left", "h":
		m.sortNext(-1)
	case "right", "l":
		m.sortNext(1)
	case "space":
		m.paused = !m.paused
	case "?":
		m.help = true
	case "/":
		m.typing = true
	case "!":
		m.problems = !m.problems
	case "esc":
		m.filter, m.problems = "", false
	}
	m.arrange()
}

// typeFilter handles a key while the user types the filter.
func (m *Model) typeFilter(key, text string) {
	switch key {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, m.filter = false, ""
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(m.filter)
		m.filter = m.filter[:len(m.filter)-n]
	default:
		m.filter += text
	}
	m.arrange()
}

// sortNext sorts by the next visible column to the right, or with step -1 to the left.
func (m *Model) sortNext(step int) {
	var keys []string
	for _, c := range m.layout() {
		if c.sorts() {
			keys = append(keys, c.key())
		}
	}
	i := slices.Index(keys, m.key) // -1 if the column is hidden
	m.key = keys[(max(i, 0)+step+len(keys))%len(keys)]
}

// arrange filters and sorts the rows.
func (m *Model) arrange() {
	m.rows = m.rows[:0]
	for _, r := range m.board.Rows() {
		if (r.Place > 0 || !m.problems) && strings.Contains(strings.ToLower(r.Title()), strings.ToLower(m.filter)) {
			m.rows = append(m.rows, r)
		}
	}
	Sort(m.rows, m.key)
	m.scroll(0)
}

// scroll moves the visible rows.
func (m *Model) scroll(by int) { m.offset = max(0, min(m.offset+by, len(m.rows)-m.body())) }

// body returns the number of rows that fit on the screen.
func (m *Model) body() int { return max(1, m.height-chrome) }

// View draws the screen.
func (m *Model) View() tea.View {
	v := tea.NewView(m.draw())
	v.AltScreen = true
	v.WindowTitle = "nixlring top " + m.cfg.Name
	return v
}
