// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

func TestParseAppliesStylesAndSkipsOtherSequences(t *testing.T) {
	got := parse("a\x1b[1;31mb\x1b[0m\x1b[7mµ\x1b[27;96;44mc\x1b[2Jd\x1b[39;49;22m\nx\x1b[")
	want := [][]cell{
		{
			{'a', style{}},
			{'b', style{fg: 2, bold: true}},
			{'µ', style{reverse: true}},
			{'c', style{fg: 15, bg: 5}},
			{'d', style{fg: 15, bg: 5}},
		},
		{{'x', style{}}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(cell{}, style{})); diff != "" {
		t.Error(diff)
	}
}

func TestReverseSwapsColors(t *testing.T) {
	fg, bg := style{fg: 7, reverse: true}.colors()
	if fg != background || bg != palette[6] {
		t.Errorf("%s on %s", fg, bg)
	}
}

func TestDrawWritesValidXMLWithTextAndBars(t *testing.T) {
	var out strings.Builder
	err := draw(&out, strings.NewReader("  <a> b\n\x1b[7mcd\x1b[0m██▌▁\n\n"), `"top"`)
	must.OK(t, err)
	for _, want := range []string{
		`viewBox="0 0 87 84"`, `>&#34;top&#34;</text>`,
		`<text x="30.8" y="47.5" textLength="42.0" lengthAdjust="spacingAndGlyphs" fill="` + foreground + `" xml:space="preserve">&lt;a&gt; b</text>`,
		`<rect x="14.0" y="52.0" width="16.8" height="18.0" fill="` + foreground,
		`<rect x="30.8" y="54.0" width="16.8" height="16.0" fill="` + foreground,
		`<rect x="47.6" y="54.0" width="4.2" height="16.0"`,
		`<rect x="56.0" y="67.8" width="8.4" height="2.2"`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is missing in\n%s", want, out.String())
		}
	}
	for d := xml.NewDecoder(strings.NewReader(out.String())); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
