// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package web

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/test/internal/browser"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// hostile is the prefix of names that a page must not interpret.
const hostile = `<img src=x onerror=document.title=1>"'&&amp;`

// fleets are the agents of the pages, and the start of the verdict. What a page says about other
// incidents is tested in cmd/nixlring/internal/web, without waiting for them.
var fleets = []struct {
	name, headline string
	args           []string
}{
	{"straggler", `^sim-4 (moves|reads|writes) data at \d+% of the speed of its peers`, []string{"--scenario", "straggler", "--agents", "8"}},
	{"one", `^No problem found in what could be compared`, []string{"--agents", "1"}},
	{"many", `^sim-128 (moves|reads|writes) data at \d+% of the speed of its peers`, []string{"--scenario", "straggler", "--agents", "256", "--rate", "8"}},
	{"hostile", regexp.QuoteMeta(`^` + hostile + `-2 `)[1:] + `(moves|reads|writes) data`, []string{"--scenario", "straggler", "--agents", "5", "--name", hostile}},
}

// serve simulates agents, and returns the address of a page about them.
func serve(t *testing.T, args ...string) string {
	t.Helper()
	nixlring, dir := built.Path(t, "NIXLRING"), t.TempDir()
	proc.Start(t, exec.CommandContext(t.Context(), nixlring, append([]string{"simulate", dir}, args...)...))
	return addressOf(t, proc.Start(t, exec.CommandContext(t.Context(), nixlring, "web", dir, "--listen", "127.0.0.1:0")))
}

// awaitHeadline waits until the page has a headline and drawn charts.
func awaitHeadline(t *testing.T, page *browser.Page, pattern string) {
	t.Helper()
	match := regexp.MustCompile(pattern)
	must.Eventually(t, func() string {
		var now struct {
			Headline string
			Drawn    []bool
		}
		page.Eval(t, stateScript, &now)
		drawn := 0
		for _, d := range now.Drawn {
			if d {
				drawn++
			}
		}
		if !match.MatchString(now.Headline) || drawn < 4 { // there may be no errors, and empty rings
			return fmt.Sprintf("headline %q, want %s; %d charts are drawn", now.Headline, pattern, drawn)
		}
		return ""
	})
}

// stateScript returns the headline, and which charts have more than axes: many pixels that aren't
// the color of text or of the grid.
const stateScript = `({
	headline: document.getElementById("headline").textContent,
	drawn: [...document.querySelectorAll("main:not([hidden]) .charts canvas")].map(canvas => {
		if (!canvas.width || !canvas.height) return false;
		const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
		let colored = 0;
		for (let i = 0; i < data.length; i += 4) {
			const [r, g, b, a] = data.slice(i, i + 4);
			if (a > 100 && Math.max(r, g, b) - Math.min(r, g, b) > 60) colored++;
		}
		return colored > 20;
	}),
})`

// watchScript records errors and violations of the content security policy. Chromium runs it in the
// page after its scripts have started, so it reads what was loaded from the list of resources.
const watchScript = `(window.problems = [], addEventListener("error", e => problems.push(e.message)),
	addEventListener("unhandledrejection", e => problems.push(String(e.reason))),
	document.addEventListener("securitypolicyviolation", e => problems.push(e.violatedDirective + " " + e.blockedURI)), true)`

// layout is how a page is shown.
type layout struct {
	Problems   []string
	Outside    []string // resources of other hosts
	Wider      float64  // pixels that don't fit
	Headline   float64  // bottom edges
	Tile       float64
	Background string
	Images     int
	Rows       int
}

const layoutScript = `({
	problems: window.problems,
	outside: performance.getEntriesByType("resource").map(e => e.name).filter(n => !n.startsWith(location.origin + "/")),
	wider: document.documentElement.scrollWidth - innerWidth,
	headline: document.getElementById("headline").getBoundingClientRect().bottom,
	tile: Math.max(0, ...[...document.querySelectorAll(".tile.warning, .tile.critical")].map(e => e.getBoundingClientRect().bottom)),
	background: getComputedStyle(document.body).backgroundColor,
	images: document.querySelectorAll("img, script:not([src])").length,
	rows: document.querySelectorAll("#agents tbody tr").length,
})`

func TestPageInChromium(t *testing.T) {
	chromium := built.Path(t, "CHROMIUM")
	addresses := make([]string, len(fleets))
	for i, f := range fleets { // all at once, because findings take some seconds
		addresses[i] = serve(t, f.args...)
	}
	for _, size := range []struct {
		name          string
		width, height int
	}{{"desktop", 1280, 720}, {"phone", 390, 844}} {
		t.Run(size.name, func(t *testing.T) {
			t.Parallel()
			page := browser.Open(t, chromium, size.width, size.height)
			for i, f := range fleets {
				t.Run(f.name, func(t *testing.T) {
					page.Go(t, addresses[i])
					page.Eval(t, watchScript, new(bool))
					awaitHeadline(t, page, f.headline)
					first := look(t, page, size.name+"-"+f.name, float64(size.height))
					page.Click(t, "#theme")
					if second := look(t, page, size.name+"-"+f.name+"-dark", float64(size.height)); second.Background == first.Background {
						t.Errorf("both themes have the background %s", first.Background)
					}
					page.Click(t, "#theme")
					if f.name == "straggler" {
						checkOrder(t, page)
						checkAgent(t, page, size.name, float64(size.height))
					}
				})
			}
		})
	}
}

// look checks the page, and takes a picture if SCREENSHOT is set.
func look(t *testing.T, page *browser.Page, name string, height float64) (l layout) {
	t.Helper()
	if dir := os.Getenv("SCREENSHOT"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".png"), page.Screenshot(t, height), 0o600); err != nil {
			t.Error(err)
		}
	}
	page.Eval(t, layoutScript, &l)
	if len(l.Problems)+len(l.Outside)+l.Images > 0 || l.Wider > 0 {
		t.Errorf("%+v", l)
	}
	if l.Headline > height || l.Tile > height {
		t.Errorf("the verdict isn't on the first screen: %+v", l)
	}
	return l
}

// orderScript returns how the table of agents is sorted.
const orderScript = `({
	sorted: [...document.querySelectorAll("#agents th[aria-sort]")].map(th => th.textContent + " " + th.getAttribute("aria-sort")).join(),
	names: [...document.querySelectorAll("#agents tbody td.name")].map(td => td.textContent),
})`

// checkOrder sorts the agents by a column with the mouse, then with the keyboard.
func checkOrder(t *testing.T, page *browser.Page) {
	t.Helper()
	check := func(want string, position ...int) {
		t.Helper()
		var now struct {
			Sorted string
			Names  []string
		}
		page.Eval(t, orderScript, &now)
		got := fmt.Sprintf("%s: %d agents", now.Sorted, len(now.Names))
		for _, i := range position {
			if i < len(now.Names) {
				got += fmt.Sprintf(", %d is %s", i, now.Names[i])
			}
		}
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	check("Notes other: 8 agents, 0 is sim-4", 0)
	page.Click(t, "#agents th:nth-child(1) button")
	check("Agent ascending: 8 agents, 0 is sim-0, 7 is sim-7", 0, 7)
	page.Press(t, "#agents th:nth-child(1) button", "\r")
	check("Agent descending: 8 agents, 0 is sim-7, 7 is sim-0", 0, 7)
	page.Press(t, "#agents th:nth-child(2) button", " ")
	var now struct{ Names []string }
	if page.Eval(t, orderScript, &now); now.Names[7] != "sim-4" {
		t.Errorf("the slowest agent isn't the last: %v", now.Names)
	}
	page.Click(t, "#agents th:last-child button")
	check("Notes other: 8 agents, 0 is sim-4", 0)
}

// checkAgent opens the page of the first agent, with a finger or a key, and goes back.
func checkAgent(t *testing.T, page *browser.Page, size string, height float64) {
	t.Helper()
	if size == "phone" {
		page.Click(t, "#agents tbody tr a")
	} else {
		page.Eval(t, `(document.activeElement.blur(), true)`, new(bool))
		page.Press(t, "", "\r")
	}
	must.Eventually(t, func() string {
		var text string
		page.Eval(t, `document.getElementById("agent").innerText`, &text)
		for _, want := range []string{"sim-4", "of the speed of its peers", "layout v4", "GB/s", "Slowest transfers", "MiB"} {
			if !strings.Contains(text, want) {
				return fmt.Sprintf("no %q in %q", want, text)
			}
		}
		var now struct{ Drawn []bool }
		page.Eval(t, stateScript, &now)
		if len(now.Drawn) != 6 || slices.Contains(now.Drawn[:4], false) { // there may be no errors, and an empty ring
			return fmt.Sprintf("drawn charts: %v", now.Drawn)
		}
		return ""
	})
	if dir := os.Getenv("SCREENSHOT"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, size+"-agent.png"), page.Screenshot(t, height), 0o600); err != nil {
			t.Error(err)
		}
	}
	page.Click(t, ".brand")
	awaitHeadline(t, page, "^sim-4 (moves|reads|writes)")
}
