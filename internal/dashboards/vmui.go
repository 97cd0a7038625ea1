package dashboards

import "strings"

// demo is the dashboard of VictoriaMetrics' page, which opens the first of
// several rows only.
func demo() Dashboard {
	return Dashboard{
		Title: "NIXL agents",
		Rows: []Row{{"NIXL agents", []Panel{
			sent, received, transfers,
			times, slowest, errors,
			postTimes, slowestPost, sizes,
			memory, fill, loss,
		}}},
	}
}

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

func newVMUI(d Dashboard) vmui {
	// The page has no step that follows from how often there are points, and
	// doesn't tell what time it shows. The window is long enough for the
	// Collector's default, a point each 10 s.
	t := terms{window: "30s", whole: "5m", top: "10"}
	page := vmui{Title: d.Title}
	for _, r := range d.Rows {
		row := vmuiRow{Title: r.Title}
		for i := range r.Panels {
			p := &r.Panels[i]
			panel := vmuiPanel{Title: p.Title, Description: p.Description, Unit: p.Unit.Label, Width: 4}
			for _, q := range p.Queries {
				expr := q.promQL(t, p.Unit)
				if !strings.Contains(q.Legend, "host_name") {
					// The page puts a legend under its hosts' names.
					expr = `label_replace(` + expr + `, "host_name", "all", "", "")`
				}
				panel.Expr = append(panel.Expr, expr)
				panel.Alias = append(panel.Alias, q.Legend)
			}
			row.Panels = append(row.Panels, panel)
		}
		page.Rows = append(page.Rows, row)
	}
	return page
}
