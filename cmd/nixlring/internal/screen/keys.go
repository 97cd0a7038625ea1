// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"slices"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// press handles a key.
func (m *Model) press(k tea.KeyPressMsg) tea.Cmd {
	key := k.String()
	switch {
	case key == "ctrl+c":
		return tea.Quit
	case m.typing:
		m.typeFilter(key, k.Text)
		return nil
	case key == "q":
		return tea.Quit
	case key == "?":
		if m.page != pageHelp {
			m.before, m.page, m.helpAt = m.page, pageHelp, 0
			return nil
		}
		m.page = m.before
		return nil
	case key == "space":
		m.paused = !m.paused
		return nil
	}
	switch m.page {
	case pageHelp:
		m.pressHelp(key)
	case pageDetail:
		m.pressDetail(key)
	default:
		m.pressTable(key)
	}
	return nil
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
	case "up", "down":
		m.typing = false
		m.pressTable(key)
		return
	default:
		m.filter += text
	}
	m.arrange()
}

// pressHelp handles a key on the help page. Drawing the page limits helpAt.
func (m *Model) pressHelp(key string) {
	switch key {
	case "up", "k":
		m.helpAt--
	case "down", "j":
		m.helpAt++
	case "pgup", "ctrl+b":
		m.helpAt -= m.body()
	case "pgdown", "ctrl+f":
		m.helpAt += m.body()
	default:
		m.page = m.before
	}
}

// pressDetail handles a key on the page of one agent.
func (m *Model) pressDetail(key string) {
	switch key {
	case "esc", "enter", "backspace", "left", "h":
		m.page = pageTable
	case "tab":
		m.view = (m.view + 1) % views
	case "up", "k", "p":
		m.move(-1)
	case "down", "j", "n":
		m.move(1)
	}
}

// pressTable handles a key on the table.
func (m *Model) pressTable(key string) {
	switch key {
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup", "ctrl+b":
		m.move(-m.body())
	case "pgdown", "ctrl+f":
		m.move(m.body())
	case "home", "g":
		m.chosen = false
		m.scroll(0)
	case "end", "G":
		m.choose(len(m.rows) - 1)
	case "enter":
		if len(m.rows) > 0 {
			m.page, m.chosen = pageDetail, true
		}
	case "left", "h":
		m.sortNext(-1)
	case "right", "l", "s":
		m.sortNext(1)
	case "r":
		m.reverse = !m.reverse
		m.arrange()
	case "!":
		m.problems = !m.problems
		m.arrange()
	case "/":
		m.typing = true
	case "esc":
		m.filter, m.problems = "", false
		m.arrange()
	}
}

// sortNext sorts by the next visible column to the right, or with step -1 to the left.
func (m *Model) sortNext(step int) {
	var keys []string
	for _, c := range m.layout() {
		keys = append(keys, c.key)
	}
	i := slices.Index(keys, m.key)
	if i < 0 {
		i = 0
	} else {
		i = (i + step + len(keys)) % len(keys)
	}
	m.key, m.reverse = keys[i], false
	m.arrange()
}
