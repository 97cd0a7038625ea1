package dashboards

// Dashboard is a page of panels, whatever draws it.
type Dashboard struct {
	UID         string // of Grafana, and the name of its file
	Title       string
	Description string
	Refresh     string // how often, by Grafana; 10s if empty, as often as there are points
	Variables   []Variable
	Rows        []Row
}

// Row is a group of panels under a title.
type Row struct {
	Title  string
	Panels []Panel
}

// Variable is a label by which the reader of a dashboard chooses what is shown.
type Variable struct {
	Name   string // of the variable
	Label  string // for the reader
	Key    string // the label of the series
	Metric string // a metric that each of what can be chosen has
	Within string // a selector that narrows down what can be chosen
	Single bool   // choose one of them, rather than several or all
	// Options are the values of a variable that chooses no series: the others'
	// are found.
	Options []string
}

// Kind is how a panel draws its queries.
type Kind string

// The kinds, by Grafana's names for them.
const (
	Lines   Kind = "timeseries"
	Number  Kind = "stat"
	Table   Kind = "table"
	Heatmap Kind = "heatmap"
)

// Panel is one picture.
type Panel struct {
	Title       string
	Description string
	Kind        Kind // Lines if empty
	Unit        Unit
	Width       int // of 24; 8 if 0
	Stacked     bool
	Max         float64 // of the axis; 0 is for what the data needs
	Bad         float64 // from here on a Number is red; 0 is for never
	Queries     []Query
}

// Query is an expression of PromQL. It may hold
//
//   - {@} and {@, …}: the labels that the dashboard's variables choose;
//   - [@]: a time that is long enough for a rate;
//   - now(series): the series as they are. That is their mean where they are
//     ranked.
type Query struct {
	Expr   string
	Legend string // may hold {{label}}
	Unit   Unit   // of a column of a Table
	Rank   string // what decides which series are shown, if not all are
}

// Unit is how numbers are written.
type Unit struct {
	Grafana string // which finds the prefix by itself
	// VictoriaMetrics' page writes numbers as they are, so that a query has to
	// bring them into range.
	Factor string // with its operator
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
	Events         = Unit{"eps", "", "/s"}
	Messages       = Unit{"mps", "", "/s"}
	Share          = Unit{"percentunit", "* 100", "%"}
	Count          = Unit{"short", "", ""}
	Seconds        = Unit{"s", "", "s"}
)

// Legends.
const (
	byHost      = "{{host_name}}"
	byAgent     = "{{host_name}} {{nixl_agent_name}}" // hosts have agents of the same names
	byDirection = "{{nixl_transfer_direction}}"
	byError     = "{{error_type}}"
)

// lines is a panel of one query.
func lines(title, description string, unit Unit, expr, legend string) Panel {
	return Panel{Title: title, Description: description, Unit: unit, Queries: []Query{{Expr: expr, Legend: legend}}}
}

var levels = []struct{ is, legend string }{{"0.5", "median"}, {"0.9", "90th percentile"}, {"0.99", "99th percentile"}}

// quantiles are the median, the 90th and the 99th percentile of a histogram.
func quantiles(title, description string, unit Unit, histogram string) Panel {
	p := Panel{Title: title, Description: description, Unit: unit}
	for _, q := range levels {
		p.Queries = append(p.Queries, Query{
			Expr:   "histogram_quantile(" + q.is + ", sum by (le) (rate(" + histogram + "_bucket{@}[@])))",
			Legend: q.legend,
		})
	}
	return p
}

// number is a panel that shows the newest value alone.
func number(title, description string, unit Unit, expr string) Panel {
	return Panel{Title: title, Description: description, Kind: Number, Unit: unit, Width: 4, Queries: []Query{{Expr: expr}}}
}

func (p Panel) bad(from float64) Panel {
	p.Bad = from
	return p
}

func (p Panel) wide(width int) Panel {
	p.Width = width
	return p
}
