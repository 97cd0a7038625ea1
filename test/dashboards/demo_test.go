// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dashboards

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/test/internal/browser"
	"github.com/nixl-otel/nixl-otel/test/internal/making"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// makeDemo starts `make demo` with variables.
func makeDemo(t *testing.T, tmp string, variables ...string) *proc.Process {
	t.Helper()
	return making.Start(t, tmp, map[string]string{
		"dist/otelcol-nixl":    program(t, "OTELCOL_NIXL"),
		"bin/nixlring":         program(t, "NIXLRING"),
		"bin/victoria-metrics": program(t, "VICTORIA_METRICS"),
		"bin/demo":             program(t, "DEMO"),
	}, []string{"build", "nixlring", "backend"}, append([]string{"demo"}, variables...)...)
}

// The test does what a new user does: run one command, open the page, press Ctrl-C.
// When the command prints the URL, all queries of the page must have data.
func TestDemoShowsDataAndLeavesNothingBehind(t *testing.T) {
	tmp, port, agents := t.TempDir(), proc.FreePort(t), 5
	if os.Getenv("SCREENSHOT") != "" {
		agents = 8 // the default
	}
	p := makeDemo(t, tmp, fmt.Sprintf("PORT=%d", port), fmt.Sprintf("AGENTS=%d", agents))
	address := fmt.Sprintf("http://127.0.0.1:%d", port)
	line := p.WaitLine(t, p.Stdout, "the URL of the page", func(line string) bool { return strings.Contains(line, address) })
	b := backend{name: "VictoriaMetrics", url: address}
	b.testVMUI(t)
	for agent, n := range map[string]int{"worker-.*": agents - 1, "offload-0": 1} {
		list, err := b.query(t, fmt.Sprintf("count(nixl_telemetry_ring_capacity{nixl_agent_name=~%q})", agent))
		if err != nil || len(list) != 1 || list[0].value != float64(n) {
			t.Errorf("agents %s: %v, error %v, want %v", agent, list, err, n)
		}
	}
	if os.Getenv("SCREENSHOT") != "" {
		awaitFiveMinutes(t, b)
	}
	t.Run("browser", func(t *testing.T) { checkPage(t, strings.Fields(line)[1]) })

	p.SignalGroup(t, syscall.SIGINT)
	p.Wait(t) // the signal or the exit code of the recipe may end make
	if _, err := b.get(t, "/-/ready", nil); err == nil {
		t.Error("the page is still served")
	}
	making.NothingLeft(t, p, tmp)
}

// checkPage opens the demo's page in a browser. It fails the test if a tab or a
// panel is missing, or if a panel has no curves or unreadable legends.
func checkPage(t *testing.T, address string) {
	// The page is high because it queries only visible panels.
	page := browser.Open(t, program(t, "CHROMIUM"), 1440, 5000)
	page.Go(t, address)
	awaitRefresh(t, page)
	for i, tab := range vmui(t) {
		button := fmt.Sprintf(".vm-predefined-panels-tabs__tab:nth-child(%d)", i+1)
		page.Click(t, button)
		panels := tab.awaitPanels(t, page)
		for _, p := range panels {
			if tab.queries[p.Title] == nil {
				t.Errorf("%s: unexpected panel %q", tab.title, p.Title)
			}
			for _, legend := range p.Legends {
				if strings.ContainsAny(legend, "{}=") {
					t.Errorf("%s: panel %q: legend %q isn't a name", tab.title, p.Title, legend)
				}
			}
		}
		if dir := os.Getenv("SCREENSHOT"); dir != "" {
			rows := 2 // more rows would be too small in a README
			if os.Getenv("SCREENSHOT_ALL") != "" {
				rows = (len(panels) + 2) / 3
			}
			var bottom float64
			page.Eval(t, fmt.Sprintf(`document.querySelectorAll(".vm-predefined-panel")[%d].parentElement.getBoundingClientRect().bottom`,
				min(3*rows, len(panels))-1), &bottom)
			path := filepath.Join(dir, "demo-"+strings.ToLower(strings.Fields(tab.title)[0])+".png")
			if err := os.WriteFile(path, page.Screenshot(t, bottom+12), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// awaitRefresh waits until the page has refreshed itself, and then turns refreshes
// off: on a busy machine, a refresh may start before all panels are drawn.
func awaitRefresh(t *testing.T, page *browser.Page) {
	t.Helper()
	const control = ".vm-autorefresh .vm-button_full-width"
	queries := 0
	for _, exprs := range vmui(t)[0].queries {
		queries += len(exprs)
	}
	proc.Eventually(t, func() string {
		var now struct {
			Interval string
			Queries  int
		}
		page.Eval(t, `({
			interval: document.querySelector("`+control+`")?.textContent ?? "",
			queries: performance.getEntriesByType("resource").filter(e => e.name.includes("/query_range")).length,
		})`, &now)
		if now.Interval != "5s" || now.Queries <= 2*queries {
			return fmt.Sprintf("the refresh interval is %q, want 5s; %d queries ran, want more than %d", now.Interval, now.Queries, 2*queries)
		}
		return ""
	})
	page.Click(t, control)
	page.Click(t, ".vm-execution-controls-list .vm-list-item")
}

// drawn is the visible state of a panel.
type drawn struct {
	Title   string
	Legends []string
	Drawn   bool // the canvas has curves
	Alert   string
}

// awaitPanels waits until all panels of a tab are drawn.
func (tab tab) awaitPanels(t *testing.T, page *browser.Page) (panels []drawn) {
	t.Helper()
	proc.Eventually(t, func() string {
		page.Eval(t, panelsScript, &panels)
		if len(panels) != len(tab.queries) {
			return fmt.Sprintf("%s: %d panels of %d", tab.title, len(panels), len(tab.queries))
		}
		for _, p := range panels {
			if !p.Drawn || len(p.Legends) == 0 || p.Alert != "" {
				return fmt.Sprintf("%s: panel %q: drawn %t, legends %q, alert %q", tab.title, p.Title, p.Drawn, p.Legends, p.Alert)
			}
		}
		return ""
	})
	return panels
}

// awaitFiveMinutes waits until there is data for the five minutes that the page
// shows.
func awaitFiveMinutes(t *testing.T, b backend) {
	t.Helper()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for range ticker.C {
		list, err := b.query(t, "min(count_over_time(nixl_telemetry_ring_capacity[6m])) > 290")
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > 0 {
			return
		}
	}
}

// panelsScript returns the visible state of each panel. It finds curves by their
// color, because the grid and the text are gray and black. It runs when the page is
// idle, or after a second, so that it doesn't delay the page.
const panelsScript = `new Promise(done => requestIdleCallback(done, {timeout: 1000})).then(() => [...document.querySelectorAll(".vm-predefined-panel")].map(panel => {
	const canvas = panel.querySelector("canvas");
	let colored = 0;
	if (canvas && canvas.width && canvas.height) {
		const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
		for (let i = 0; i < data.length && colored <= 20; i += 4) {
			const [r, g, b, a] = data.slice(i, i + 4);
			if (a > 100 && Math.max(r, g, b) - Math.min(r, g, b) > 60) colored++;
		}
	}
	return {
		title: panel.querySelector(".vm-predefined-panel-header__title").textContent.trim(),
		legends: [...panel.querySelectorAll(".vm-legend-item")].map(e => e.textContent.trim()),
		drawn: colored > 20,
		alert: [...panel.querySelectorAll(".vm-alert")].map(e => e.textContent.trim()).join("; "),
	};
}))`

func TestDemoRejectsInvalidVariablesAndStartsNothing(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, taken, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		variable, message string
	}{
		"port is taken":  {"PORT=" + taken, "make demo: port " + taken + " on 127.0.0.1 is taken"},
		"invalid port":   {"PORT=http", "make demo: PORT=http is not a port"},
		"too few agents": {"AGENTS=1", "make demo: AGENTS=1 is not a number of agents"},
	} {
		t.Run(name, func(t *testing.T) {
			tmp := t.TempDir()
			p := makeDemo(t, tmp, fmt.Sprintf("PORT=%d", proc.FreePort(t)), c.variable)
			if code := p.Wait(t); code != 2 { // make's exit code for a failed recipe
				t.Errorf("exit code %d, want 2", code)
			}
			if !strings.Contains(p.Stderr.Text(), c.message) {
				t.Errorf("stderr doesn't contain %q:\n%s", c.message, p.Stderr.Text())
			}
			making.NothingLeft(t, p, tmp)
		})
	}
}
