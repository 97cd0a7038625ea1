// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

// Dashboard is a page of panels.
type Dashboard struct {
	UID         string // in Grafana; also the name of the file
	Title       string
	Description string
	Refresh     string // Grafana's refresh interval; default: 10s, the default collection interval
	Variables   []Variable
	Rows        []Row
}

// Row is a group of panels under a title.
type Row struct {
	Title  string
	Panels []Panel
	// Optional rows show metrics of other programs, which a backend may lack. They
	// are collapsed initially.
	Optional bool
}

// Kind is the visualization of a panel.
type Kind string

// The kinds, by Grafana's names.
const (
	Lines   Kind = "timeseries"
	Number  Kind = "stat"
	Table   Kind = "table"
	Heatmap Kind = "heatmap"
)

// Panel is one visualization.
type Panel struct {
	Title       string
	Description string
	Kind        Kind // default: Lines
	Unit        Unit
	Width       int // of 24; default: 8
	Stacked     bool
	Max         float64 // maximum of the axis; 0 fits the data
	Bad         float64 // a Number is red from this value on; 0 means never
	Queries     []Query
}

// Query is a PromQL expression. It may contain these placeholders:
//
//   - {@} and {@, …}: the selector of the dashboard's variables
//   - [@]: a time range that is long enough for a rate
//   - now(series): the series or, in a ranking, their mean over the displayed time range
type Query struct {
	Expr   string
	Legend string // may contain {{label}}
	Unit   Unit   // unit of a column of a Table
	Rank   string // expression that selects the displayed series; default: all series
	Lowest bool   // whether to display the series with the lowest rank
}

// Unit is the unit of a panel's numbers.
type Unit struct {
	Grafana string // Grafana's name; Grafana adds a prefix
	// VictoriaMetrics' page doesn't scale numbers, so Factor, an operator and a
	// number, does.
	Factor string
	Label  string
}

// The units.
var (
	BytesPerSecond = Unit{"Bps", "/ 1e9", "GB/s"}
	Bytes          = Unit{"decbytes", "/ 1e6", "MB"}
	Memory         = Unit{"bytes", "/ 2^30", "GiB"}
	Milliseconds   = Unit{"s", "* 1e3", "ms"}
	Microseconds   = Unit{"s", "* 1e6", "µs"}
	PerSecond      = Unit{"cps", "", "/s"}
	Operations     = Unit{"ops", "", "/s"}
	Requests       = Unit{"reqps", "", "/s"}
	Messages       = Unit{"mps", "", "/s"}
	Share          = Unit{"percentunit", "* 100", "%"}
	Percent        = Unit{"percent", "", "%"}
	Count          = Unit{"short", "", ""}
	Seconds        = Unit{"s", "", "s"}
)

// Legends.
const (
	byHost      = "{{host_name}}"
	byAgent     = "{{host_name}} {{k8s_pod_name}} {{nixl_agent_name}}" // agents of several hosts and pods may share a name
	byDirection = "{{nixl_transfer_direction}}"
	byError     = "{{error_type}}"
)

// lines returns a panel of one query.
func lines(title, description string, unit Unit, expr, legend string) Panel {
	return Panel{Title: title, Description: description, Unit: unit, Queries: []Query{{Expr: expr, Legend: legend}}}
}

// number returns a panel that shows the newest value.
func number(title, description string, unit Unit, expr string) Panel {
	return Panel{Title: title, Description: description, Kind: Number, Unit: unit, Width: 4, Queries: []Query{{Expr: expr}}}
}

var levels = []struct{ phi, legend string }{{"0.5", "median"}, {"0.9", "90th percentile"}, {"0.99", "99th percentile"}}

// quantiles returns a panel of the median, the 90th and the 99th percentile.
func quantiles(title, description string, unit Unit, h histogram) Panel {
	p := Panel{Title: title, Description: description, Unit: unit}
	for _, l := range levels {
		p.Queries = append(p.Queries, Query{Expr: h.quantile(l.phi, ""), Legend: l.legend})
	}
	return p
}

// distribution returns a panel of a histogram's distribution over time.
func distribution(title, description string, unit Unit, h histogram) Panel {
	return Panel{
		Title: title, Description: description, Kind: Heatmap, Unit: unit, Width: 12,
		Queries: []Query{
			{Expr: "${cumulative}(" + h.buckets() + ")", Legend: "{{le}}"},
			{Expr: h.native("")},
		},
	}
}

func (p Panel) described(description string) Panel {
	p.Description = description
	return p
}

func (p Panel) bad(from float64) Panel {
	p.Bad = from
	return p
}

func (p Panel) upTo(most float64) Panel {
	p.Max = most
	return p
}

func (p Panel) wide(width int) Panel {
	p.Width = width
	return p
}

func (p Panel) stacked() Panel {
	p.Stacked = true
	return p
}
