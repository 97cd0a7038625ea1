// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
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
	marked // keys
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

// in returns painted text.
func (p paint) in(s string) string {
	if p == plain || s == "" {
		return s
	}
	return styles[p] + s + ansi.ResetStyle
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
