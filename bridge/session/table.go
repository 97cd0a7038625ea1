// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// table is a text table. The first column and the columns device, error and ""
// (bars) are left-aligned; the others are right-aligned.
type table struct {
	rows [][]string
}

func newTable(names ...string) *table { return &table{rows: [][]string{names}} }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the table after an empty line, or nothing if it has no rows.
func (t *table) write(b *bytes.Buffer) {
	if len(t.rows) < 2 {
		return
	}
	names := t.rows[0]
	widths := make([]int, len(names))
	for r, row := range t.rows {
		for c, cell := range row {
			widths[c] = max(widths[c], utf8.RuneCountInString(cell))
			if c == 0 && r > 0 {
				widths[c] = max(widths[c], utf8.RuneCountInString(cell)+2) // indented
			}
		}
	}
	b.WriteByte('\n')
	for r, row := range t.rows {
		var line strings.Builder
		for c, cell := range row {
			if c == 0 && r > 0 {
				cell = "  " + cell
			}
			padding := strings.Repeat(" ", widths[c]-utf8.RuneCountInString(cell))
			if c > 0 {
				line.WriteString("  ")
			}
			switch names[c] {
			case names[0], "device", "error", "":
				line.WriteString(cell + padding)
			default:
				line.WriteString(padding + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// barWidth is the length of a full bar.
const barWidth = 20

// bar draws a share between 0 and 1, to an eighth of a character.
func bar(share float64) string {
	share = min(max(share, 0), 1) // a file may contain negative durations
	eighths := int(math.Round(share * barWidth * 8))
	if eighths == 0 && share > 0 {
		eighths = 1 // make a small share visible
	}
	b := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		b += string([]rune(" ▏▎▍▌▋▊▉")[rest])
	}
	return b
}

// printable returns text that is safe to print on a terminal: quoted and escaped if
// it contains characters that a terminal would interpret.
func printable(s string) string {
	notPrint := func(r rune) bool { return !unicode.IsPrint(r) }
	if utf8.ValidString(s) && strings.IndexFunc(s, notPrint) < 0 {
		return s
	}
	return strconv.Quote(s)
}
