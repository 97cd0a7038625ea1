// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"errors"
	"io"
	"strings"
	"time"

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

// page is a page of the screen.
type page uint8

const (
	pageTable page = iota
	pageDetail
	pageHelp
)

// Model is the state of the screen.
type Model struct {
	cfg           Config
	board         *fleet.Board
	width, height int

	page   page
	before page // the page before help
	view   int  // first view on the page of an agent
	helpAt int  // first visible line of help
	paused bool

	key      string
	reverse  bool
	filter   string
	typing   bool // the user is typing the filter
	problems bool // show only agents with problems
	rows     []*fleet.Row
	selected string // ID
	chosen   bool   // by the user; otherwise the first row is selected
	offset   int    // first visible row
}

// New returns a screen without samples.
func New(cfg Config) *Model {
	if cfg.Sort == "" {
		cfg.Sort = "name"
	}
	return &Model{
		cfg: cfg, board: fleet.NewBoard(cfg.Window, fleet.DefaultHistory), key: cfg.Sort,
		width: 80, height: 24,
	}
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
		m.arrange()
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
	case tea.MouseWheelMsg:
		switch msg.Button {
		case tea.MouseWheelUp:
			m.move(-3)
		case tea.MouseWheelDown:
			m.move(3)
		}
	}
	return m, nil
}

// View draws the screen.
func (m *Model) View() tea.View {
	var s string
	switch m.page {
	case pageDetail:
		s = m.detail()
	case pageHelp:
		s = m.help()
	default:
		s = m.table()
	}
	v := tea.NewView(s)
	v.AltScreen = true
	v.WindowTitle = "nixlring top " + m.cfg.Name
	return v
}

// arrange filters and sorts the rows, and scrolls to the selected one.
func (m *Model) arrange() {
	m.rows = m.rows[:0]
	for _, r := range m.board.Rows() {
		if (r.Place > 0 || !m.problems) && strings.Contains(strings.ToLower(r.Name), strings.ToLower(m.filter)) {
			m.rows = append(m.rows, r)
		}
	}
	Sort(m.rows, m.key, m.reverse)
	if m.page == pageDetail && m.board.Row(m.selected) == nil {
		m.page = pageTable // the agent was removed
	}
	m.scroll(m.position())
}

// position returns the index of the selected row, or 0 if the row was removed or the user has selected none.
func (m *Model) position() int {
	if !m.chosen {
		return 0
	}
	for i, r := range m.rows {
		if r.ID == m.selected {
			return i
		}
	}
	return 0
}

// move moves the selection.
func (m *Model) move(by int) { m.choose(m.position() + by) }

// choose selects a row, which stays selected wherever it moves.
func (m *Model) choose(row int) {
	m.chosen = true
	m.scroll(row)
}

// scroll selects a row and makes it visible.
func (m *Model) scroll(to int) {
	if len(m.rows) == 0 {
		m.offset = 0
		return
	}
	to = min(max(to, 0), len(m.rows)-1)
	m.selected = m.rows[to].ID
	body := m.body()
	m.offset = min(max(m.offset, to-body+1), to)
	m.offset = max(0, min(m.offset, len(m.rows)-body))
}

// body returns the number of rows that fit on the screen.
func (m *Model) body() int { return max(1, m.height-tableChrome) }
