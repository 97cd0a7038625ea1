// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

const before, after = "<!-- generated from package semconv: ", "<!-- end of generated text -->"

func TestFillReplacesGeneratedSectionsOnly(t *testing.T) {
	const document = "intro\n" + before + "a -->\nold\n" + after + "\nbetween\n" + before + "b -->\n" + after + "\nend\n"
	const want = "intro\n" + before + "a -->\nnew a\n" + after + "\nbetween\n" + before + "b -->\nnew b\n" + after + "\nend\n"
	sections := map[string]string{"a": "new a\n", "b": "new b\n"}
	got, err := inMarkdown.fill(document, sections)
	if err != nil || got != want {
		t.Errorf("error is %v, document is\n%s\nwant\n%s", err, got, want)
	}
	if again, err := inMarkdown.fill(got, sections); err != nil || again != want {
		t.Errorf("filling again: error is %v, document is\n%s", err, again)
	}
}

func TestFillRejectsDocumentsThatLackMarkers(t *testing.T) {
	for document, want := range map[string]string{
		"no marker":                               `section "a" is missing`,
		before + "b -->\n" + after:                `unknown section "b"`,
		before + "a -->\nno end":                  `section "a" has no end`,
		strings.Repeat(before+"a -->\n"+after, 2): `section "a" is repeated`,
	} {
		if _, err := inMarkdown.fill(document, map[string]string{"a": "x"}); err == nil || err.Error() != want {
			t.Errorf("%q: error is %v, want %s", document, err, want)
		}
	}
}

func TestBoundsHaveUnits(t *testing.T) {
	for want, got := range map[string]string{
		"100 ns": seconds(100e-9), "2.5 ms": seconds(2.5e-3), "1 s": seconds(1), "10 s": seconds(10),
		"1 KiB": bytes(1 << 10), "16 GiB": bytes(1 << 34), "300 MB/s": perSecond(3e8), "1 TB/s": perSecond(1e12),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
