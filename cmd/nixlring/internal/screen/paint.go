// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"math"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// paint is a style of text.
type paint uint8

const (
	plain paint = iota
	dim
	strong
	good
	note
	warn
	bad
	marked // selection and keys
	paints
)

var styles = [paints]string{
	dim:    ansi.NewStyle().ForegroundColor(ansi.BrightBlack).String(),
	strong: ansi.NewStyle().Bold().String(),
	good:   ansi.NewStyle().ForegroundColor(ansi.Green).String(),
	note:   ansi.NewStyle().ForegroundColor(ansi.Cyan).String(),
	warn:   ansi.NewStyle().ForegroundColor(ansi.Yellow).String(),
	bad:    ansi.NewStyle().Bold().ForegroundColor(ansi.Red).String(),
	marked: ansi.NewStyle().Reverse(true).ForegroundColor(ansi.Cyan).String(),
}

// put writes painted text.
func (p paint) put(b *strings.Builder, s string) {
	if p == plain || s == "" {
		b.WriteString(s)
		return
	}
	b.WriteString(styles[p])
	b.WriteString(s)
	b.WriteString(ansi.ResetStyle)
}

// in returns painted text.
func (p paint) in(s string) string {
	var b strings.Builder
	p.put(&b, s)
	return b.String()
}

// fit pads or truncates text to a width.
func fit(s string, width int, right bool) string {
	n := ansi.StringWidth(s)
	if n > width {
		s = ansi.Truncate(s, width, "…")
		n = ansi.StringWidth(s)
	}
	pad := strings.Repeat(" ", max(0, width-n))
	if right {
		return pad + s
	}
	return s + pad
}

// spark returns the newest points of a series as vertical bars, scaled to most. Missing points
// are blank.
func spark(series []float64, width int, most float64) string {
	parts := []rune("▁▂▃▄▅▆▇█")
	series = series[max(0, len(series)-width):]
	s := make([]rune, 0, width)
	for range width - len(series) {
		s = append(s, ' ')
	}
	for _, v := range series {
		switch {
		case math.IsNaN(v):
			s = append(s, ' ')
		case most <= 0:
			s = append(s, parts[0])
		default:
			i := int(v / most * float64(len(parts)))
			s = append(s, parts[min(max(i, 0), len(parts)-1)])
		}
	}
	return string(s)
}

// highest returns the highest value of the newest points.
func highest(series []float64, width int) (most float64) {
	for _, v := range series[max(0, len(series)-width):] {
		if v > most {
			most = v
		}
	}
	return most
}
