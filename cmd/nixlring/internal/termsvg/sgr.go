// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"strings"
)

// background, foreground and palette are the colors of the image. palette has the 16
// terminal colors.
const (
	background = "#0d1117"
	foreground = "#d5dbe3"
)

var palette = [16]string{
	"#484f58", "#ff7b72", "#3fb950", "#e3b341", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4",
	"#7d8590", "#ffa198", "#56d364", "#f2cc60", "#79c0ff", "#d2a8ff", "#56d4dd", "#ffffff",
}

// style is the style of a cell. The zero value is the terminal's default.
type style struct {
	fg, bg        int // index in the palette plus one
	bold, reverse bool
}

// colors returns the colors of the style.
func (s style) colors() (fg, bg string) {
	fg, bg = foreground, background
	if s.fg > 0 {
		fg = palette[s.fg-1]
	}
	if s.bg > 0 {
		bg = palette[s.bg-1]
	}
	if s.reverse {
		fg, bg = bg, fg
	}
	return fg, bg
}

type cell struct {
	r     rune
	style style
}

// parse splits text into cells. It applies escape sequences that set a style, the only ones
// that tmux prints, and skips others.
func parse(text string) (lines [][]cell) {
	var now style
	for line := range strings.SplitSeq(text, "\n") {
		var cells []cell
		for line != "" {
			if rest, ok := strings.CutPrefix(line, "\x1b["); ok {
				end := strings.IndexFunc(rest, func(r rune) bool { return r >= '@' && r <= '~' })
				if end < 0 {
					break
				}
				if rest[end] == 'm' {
					now.set(rest[:end])
				}
				line = rest[end+1:]
				continue
			}
			r := []rune(line)[0]
			line = line[len(string(r)):]
			cells = append(cells, cell{r, now})
		}
		lines = append(lines, cells)
	}
	return lines
}

// set applies the parameters of one sequence.
func (s *style) set(parameters string) {
	for p := range strings.SplitSeq(parameters, ";") {
		n, err := strconv.Atoi(p)
		if p == "" {
			n, err = 0, nil
		}
		switch {
		case err != nil:
		case n == 0:
			*s = style{}
		case n == 1:
			s.bold = true
		case n == 22:
			s.bold = false
		case n == 7:
			s.reverse = true
		case n == 27:
			s.reverse = false
		case n >= 30 && n <= 37:
			s.fg = n - 30 + 1
		case n == 39:
			s.fg = 0
		case n >= 40 && n <= 47:
			s.bg = n - 40 + 1
		case n == 49:
			s.bg = 0
		case n >= 90 && n <= 97:
			s.fg = n - 90 + 9
		case n >= 100 && n <= 107:
			s.bg = n - 100 + 9
		}
	}
}
