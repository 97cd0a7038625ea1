// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Termsvg converts the output of tmux capture-pane -e -p to an SVG on standard output. It
// creates the screenshots in the documentation.
//
// Each run of text has a fixed width, and bars are drawn as rectangles, so that columns are
// aligned with any font.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"html"
	"io"
	"os"
	"strings"
)

func main() {
	title := flag.String("title", "", "text in the title bar")
	flag.Parse()
	if err := draw(os.Stdout, os.Stdin, *title); err != nil {
		fmt.Fprintf(os.Stderr, "termsvg: %v\n", err)
		os.Exit(1)
	}
}

// The sizes of a cell and of the window, in pixels.
const (
	cellWidth  = 8.4
	cellHeight = 18.0
	baseline   = 13.5
	fontSize   = 14
	margin     = 14.0
	titleBar   = 34.0
)

// draw reads lines with escape sequences and writes an SVG.
func draw(w io.Writer, r io.Reader, title string) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	lines := parse(strings.TrimRight(string(text), "\n"))
	columns := 0
	for _, line := range lines {
		columns = max(columns, len(line))
	}
	width := float64(columns)*cellWidth + 2*margin
	height := float64(len(lines))*cellHeight + titleBar + margin
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" `+
		`font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="%d">`+"\n",
		width, height, width, height, fontSize)
	fmt.Fprintf(out, `<rect width="100%%" height="100%%" rx="9" fill="%s"/>`+"\n", background)
	for i, c := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(out, `<circle cx="%d" cy="17" r="6" fill="%s"/>`+"\n", 20+20*i, c)
	}
	fmt.Fprintf(out, `<text x="%.0f" y="22" text-anchor="middle" fill="%s">%s</text>`+"\n", width/2, palette[8], html.EscapeString(title))
	for i, line := range lines {
		drawLine(out, line, titleBar+float64(i)*cellHeight)
	}
	fmt.Fprintln(out, "</svg>")
	return out.Flush()
}

// drawLine draws one line as runs of cells with the same style.
func drawLine(w io.Writer, line []cell, y float64) {
	for from := 0; from < len(line); {
		to := from + 1
		for to < len(line) && line[to].style == line[from].style && isBlock(line[to].r) == isBlock(line[from].r) {
			to++
		}
		drawRun(w, line[from:to], margin+float64(from)*cellWidth, y)
		from = to
	}
}

// drawRun draws cells of one style.
func drawRun(w io.Writer, run []cell, x, y float64) {
	fg, bg := run[0].style.colors()
	if bg != background {
		rect(w, x, y, float64(len(run))*cellWidth, cellHeight, bg)
	}
	if isBlock(run[0].r) {
		drawBlocks(w, run, x, y, fg)
		return
	}
	var text strings.Builder
	for _, c := range run {
		text.WriteRune(c.r)
	}
	s := strings.TrimRight(text.String(), " ")
	lead := len(s) - len(strings.TrimLeft(s, " "))
	if s = strings.TrimLeft(s, " "); s == "" {
		return
	}
	weight := ""
	if run[0].style.bold {
		weight = ` font-weight="bold"`
	}
	n := len([]rune(s))
	fmt.Fprintf(w, `<text x="%.1f" y="%.1f" textLength="%.1f" lengthAdjust="spacingAndGlyphs" fill="%s"%s xml:space="preserve">%s</text>`+"\n",
		x+float64(lead)*cellWidth, y+baseline, float64(n)*cellWidth, fg, weight, html.EscapeString(s))
}

// isBlock reports whether a character is a bar.
func isBlock(r rune) bool { return r >= '▁' && r <= '▏' }

// drawBlocks draws bars. Adjacent equal bars are drawn as one.
func drawBlocks(w io.Writer, run []cell, x, y float64, fg string) {
	const eighths = 8
	for from := 0; from < len(run); {
		to := from + 1
		for to < len(run) && run[to].r == run[from].r && run[from].r <= '█' {
			to++
		}
		width, height := float64(to-from)*cellWidth, cellHeight
		if r := run[from].r; r <= '█' { // lower eighths
			height = cellHeight * float64(r-'▁'+1) / eighths
		} else { // left eighths, from seven down to one
			width = cellWidth * float64('▏'-r+1) / eighths
		}
		// Leave some room between a full bar and the line above.
		const room = 2
		if height > cellHeight-room {
			height = cellHeight - room
		}
		rect(w, x+float64(from)*cellWidth, y+cellHeight-height, width, height, fg)
		from = to
	}
}

func rect(w io.Writer, x, y, width, height float64, fill string) {
	fmt.Fprintf(w, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s" shape-rendering="crispEdges"/>`+"\n", x, y, width, height, fill)
}
