// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package web

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/test/internal/browser"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
)

// pictureScript returns what is drawn: the size of the forms, the colors of devices, and what doesn't fit.
const pictureScript = `({
	dots: [...document.querySelectorAll(".dots, rect")].filter(e => e.getBoundingClientRect().width > 0).length,
	colors: new Set([...document.querySelectorAll(".dots")].map(e => getComputedStyle(e).stroke)).size,
	outside: performance.getEntriesByType("resource").length,
	wider: document.documentElement.scrollWidth - innerWidth,
	headline: document.querySelector("h1").textContent,
})`

func TestPictureOfASessionInChromium(t *testing.T) {
	t.Parallel()
	chromium, nixlring := built.Path(t, "CHROMIUM"), built.Path(t, "NIXLRING")
	const name = "session_2025-11-17_00-04-29"
	file := filepath.Join(t.TempDir(), "page.html")
	csv := filepath.Join(ringtest.Root(t), "bridge", "session", "testdata", "upstream", name+".csv")
	out, err := exec.CommandContext(t.Context(), nixlring, "session", "analyze", csv, "--html", file).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "815 packets, 0 failed") {
		t.Fatalf("%v: %s", err, out)
	}
	for _, width := range []int{1280, 390} {
		page := browser.Open(t, chromium, width, 844)
		page.Go(t, "file://"+file)
		var got struct {
			Dots, Colors, Outside int
			Wider                 float64
			Headline              string
		}
		page.Eval(t, pictureScript, &got)
		if got.Dots < 36 || got.Colors != 2 || got.Outside > 0 || got.Wider > 0 || got.Headline != name { // 2 devices, 34 layers
			t.Errorf("%d pixels wide: %+v", width, got)
		}
	}
}
