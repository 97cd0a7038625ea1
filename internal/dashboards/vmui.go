// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

import "strings"

// demo returns the dashboards for VictoriaMetrics' page, which displays them as tabs in this order.
func demo() []Dashboard { return []Dashboard{overview(), bottleneck(), ringHealth()} }

type vmui struct {
	Title string    `json:"title"`
	Rows  []vmuiRow `json:"rows"`
}

type vmuiRow struct {
	Title  string      `json:"title"`
	Panels []vmuiPanel `json:"panels"`
}

type vmuiPanel struct {
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Unit        string   `json:"unit"`
	Width       int      `json:"width"` // of 12
	Expr        []string `json:"expr"`
	Alias       []string `json:"alias"`
}

// newVMUI renders the panels of kind Lines; the page supports no other kinds. All panels are in one
// row, because the page expands only the first row.
func newVMUI(d Dashboard) vmui {
	_, title, _ := strings.Cut(d.Title, " / ")
	row := vmuiRow{Title: d.Description}
	for _, r := range d.Rows {
		for i := range r.Panels {
			if p := &r.Panels[i]; p.kind() == Lines && !r.Optional {
				row.Panels = append(row.Panels, p.vmui())
			}
		}
	}
	return vmui{Title: title, Rows: []vmuiRow{row}}
}

func (p *Panel) vmui() vmuiPanel {
	// The page has no variables for the interval of points or the displayed time range.
	// The window is long enough for the Collector's default interval of 10 s.
	t := terms{window: "30s", whole: "5m", top: "10"}
	panel := vmuiPanel{Title: p.Title, Description: p.Description, Unit: p.Unit.Label, Width: 4}
	for _, q := range p.Queries {
		expr := q.promQL(t, p.Unit)
		if !strings.Contains(q.Legend, "host_name") {
			// The page groups legends by host name.
			expr = `label_replace(` + expr + `, "host_name", "all", "", "")`
		}
		panel.Expr = append(panel.Expr, fromZero(expr))
		panel.Alias = append(panel.Alias, q.Legend)
	}
	return panel
}

// fromZero sets the first two points of an expression to 0, even if they don't exist. The page's
// axes start at the lowest value, and the page may not display the first point.
func fromZero(expr string) string {
	const first = `(start() + step())`
	return `((` + expr + `) * (time() > bool ` + first + `)) default (0 / (time() <= bool ` + first + `))`
}
