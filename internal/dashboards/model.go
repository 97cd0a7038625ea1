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
type Kind uint8

// The kinds.
const (
	Lines Kind = iota
	Number
	Table
	Heatmap
	Logs
)

// Panel is one visualization.
type Panel struct {
	Title       string
	Description string
	Kind        Kind
	Unit        Unit
	Width       uint32 // of 24; default: 8
	Stacked     bool
	Many        bool    // whether there may be many series; then the legend is a table, and areas aren't filled
	Max         float64 // maximum of the axis; 0 fits the data
	NoData      string  // displayed if there are no series; default: Grafana's "No data"
	Bad         float64 // a Number is red from this value on; 0 means never
	Queries     []Query
	Backend     *LogsBackend // of Logs
}

// LogsBackend is a kind of data source that stores log records.
type LogsBackend struct {
	Title string
	Type  string // Grafana's name of the data source
	Name  string // of the variable that selects a data source
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
	// Axes reach at least this value. Without it, Grafana scales the axis of zeros to
	// 100, which is 10,000% for a share.
	Least float64
}

// The units.
var (
	BytesPerSecond = Unit{Grafana: "Bps"}
	Bytes          = Unit{Grafana: "decbytes"}
	Memory         = Unit{Grafana: "bytes"}
	PerSecond      = Unit{Grafana: "cps", Least: 0.1}
	Operations     = Unit{Grafana: "ops", Least: 0.1}
	Requests       = Unit{Grafana: "reqps", Least: 0.1}
	Messages       = Unit{Grafana: "mps", Least: 0.1}
	Share          = Unit{Grafana: "percentunit", Least: 0.01}
	Percent        = Unit{Grafana: "percent", Least: 1}
	Time           = Unit{Grafana: "dateTimeFromNow"}
	Count          = Unit{Grafana: "short", Least: 1}
	Seconds        = Unit{Grafana: "s"}
)

// Legends.
const (
	byHost = "{{host_name}}"
	// Agents of several hosts and pods may share a name. The name comes first, because Grafana
	// cuts off long legends.
	byAgent     = "{{nixl_agent_name}} {{k8s_pod_name}} {{host_name}}"
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

// busy returns a table of what a rank selects.
func busy(title, description, rank string, columns ...Query) Panel {
	for i := range columns {
		columns[i].Rank = rank
	}
	return Panel{Title: title, Description: description, Kind: Table, Width: 24, Queries: columns}
}

func column(title string, unit Unit, expr string) Query {
	return Query{Expr: expr, Legend: title, Unit: unit}
}

// quantiles returns a panel of the median, the 90th and the 99th percentile.
func quantiles(title, description string, unit Unit, quantile func(phi, by string) string) Panel {
	p := Panel{Title: title, Description: description, Unit: unit}
	for _, l := range []struct{ phi, legend string }{{"0.5", "median"}, {"0.9", "90th percentile"}, {"0.99", "99th percentile"}} {
		p.Queries = append(p.Queries, Query{Expr: quantile(l.phi, ""), Legend: l.legend})
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

func (p Panel) wide(width uint32) Panel {
	p.Width = width
	return p
}

func (p Panel) many() Panel {
	p.Many = true
	return p
}

func (p Panel) ifEmpty(text string) Panel {
	p.NoData = text
	return p
}
