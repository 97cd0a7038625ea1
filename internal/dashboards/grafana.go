// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// source is the variable of the data source.
var source = common.DataSourceRef{Type: new("prometheus"), Uid: new("${datasource}")}

// page is a Grafana dashboard. The SDK's annotations lack the format fields of a Prometheus data
// source.
type page struct {
	dashboard.Dashboard
	Annotations struct {
		List []annotation `json:"list"`
	} `json:"annotations"`
}

type annotation struct {
	dashboard.AnnotationQuery
	TitleFormat string `json:"titleFormat"`
	TextFormat  string `json:"textFormat"`
	TagKeys     string `json:"tagKeys"`
}

// menu is the tag of the dashboards in the menu, which passes on the selected values. A dashboard
// with a variable that can have only one value isn't in it, because All may be selected.
const menu = "nixl-menu"

func newGrafana(d Dashboard) (page, error) {
	refresh := d.Refresh
	if refresh == "" {
		refresh = "10s"
	}
	tags := []string{"nixl"}
	if !d.single() {
		tags = append(tags, menu)
	}
	b := dashboard.NewDashboardBuilder(d.Title).Uid(d.UID).Description(d.Description).Tags(tags).
		Readonly().Version(1).Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Time("now-30m", "now").Refresh(refresh).
		Link(dashboard.NewDashboardLinkBuilder("NIXL").Type(dashboard.DashboardLinkTypeDashboards).
			Tags([]string{menu}).AsDropdown(true).IncludeVars(true).KeepTime(true)).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus"))
	for _, v := range d.Variables {
		b.WithVariable(v.grafana())
	}
	for _, v := range d.logsBackends() {
		b.WithVariable(v)
	}
	if d.has(Heatmap) {
		b.WithVariable(cumulative())
	}
	if err := d.addRows(b); err != nil {
		return page{}, err
	}
	built, err := b.Build()
	if err != nil {
		return page{}, err
	}
	for i := range built.Templating.List {
		if v := &built.Templating.List[i]; v.Hide != nil && *v.Hide == dashboard.VariableHideHideVariable {
			v.SkipUrlSync = new(true) // a link must not set what the backend determines
		}
	}
	p := page{Dashboard: built}
	p.Annotations.List = d.annotations()
	return p, nil
}

// single reports whether a variable can have only one value.
func (d *Dashboard) single() bool {
	return slices.ContainsFunc(d.Variables, func(v Variable) bool { return v.Single })
}

func (d *Dashboard) has(k Kind) bool {
	for _, r := range d.Rows {
		for i := range r.Panels {
			if r.Panels[i].kind() == k {
				return true
			}
		}
	}
	return false
}

// annotations returns the annotations: the alerts about the selected hosts and agents, and, if
// agents can be selected, their restarts.
func (d *Dashboard) annotations() []annotation {
	where := "{{k8s_namespace_name}} {{k8s_pod_name}} {{host_name}} {{nixl_agent_name}}"
	mark := func(name, color, expr, title string) annotation {
		return annotation{
			AnnotationQuery: dashboard.AnnotationQuery{Name: name, Datasource: source, Enable: true, IconColor: color, Expr: &expr},
			TitleFormat:     title, TextFormat: where,
		}
	}
	list := []annotation{} // not null in JSON
	if about := d.alertsShown(); about != nil {
		expr := `ALERTS{alertname=~"NIXL.*",alertstate="firing",` + strings.Join(about, ",") + `}`
		list = append(list, mark("Alerts", "red", expr, "{{alertname}}"))
	}
	if strings.Contains(selector(d.Variables), "nixl_agent_name") {
		expr := terms{selector: selector(d.Variables)}.fillIn(ofAgents + `(increase(nixl_telemetry_ring_restarts_total{@}[1m])) > 0`)
		list = append(list, mark("Agent restarts", "blue", expr, "Agent restarted"))
	}
	return list
}

// alertsShown returns matchers of the alerts about the selected hosts and agents, or nil if
// neither can be selected.
func (d *Dashboard) alertsShown() (matchers []string) {
	for _, v := range d.Variables {
		switch {
		case v.Key != "host_name" && v.Key != "nixl_agent_name":
		case v.Single:
			matchers = append(matchers, fmt.Sprintf(`%s="$%s"`, v.Key, v.Name))
		default:
			matchers = append(matchers, fmt.Sprintf(`%s=~"$%s|"`, v.Key, v.Name)) // an alert about a host has no agent
		}
	}
	return matchers
}

// addRows adds the rows and their panels. The SDK places them.
func (d *Dashboard) addRows(b *dashboard.DashboardBuilder) error {
	id := uint32(0)
	next := func() uint32 {
		id++
		return id
	}
	for _, r := range d.Rows {
		row := dashboard.NewRowBuilder(r.Title).Id(next()).Collapsed(r.Optional)
		var panels []placed
		for i := range r.Panels {
			p := &r.Panels[i]
			panel, err := p.grafana(selector(d.Variables))
			if err != nil {
				return err
			}
			w, h := p.size()
			panel.Id, panel.GridPos = new(next()), &dashboard.GridPos{W: w, H: h}
			panels = append(panels, placed(panel))
		}
		if r.Optional {
			for _, p := range panels {
				row.WithPanel(p)
			}
		}
		b.WithRow(row)
		if !r.Optional {
			for _, p := range panels {
				b.WithPanel(p)
			}
		}
	}
	return nil
}

// placed is a panel that is built and has a size.
type placed dashboard.Panel

// Build returns the panel.
func (p placed) Build() (dashboard.Panel, error) { return dashboard.Panel(p), nil }

func (p *Panel) size() (w, h uint32) {
	w, h = 8, 9 // the legend of a ranked panel shows 10 lines
	if p.Width != 0 {
		w = uint32(p.Width)
	}
	switch p.kind() {
	case Number:
		h = 4
	case Table:
		h = 12
	case Logs:
		h = 10
	case Lines, Heatmap:
	}
	return w, h
}

func (v *Variable) grafana() cog.Builder[dashboard.VariableModel] {
	if v.Options != nil {
		return v.options()
	}
	series := v.Metric
	switch names, found := strings.CutSuffix(series, "}"); {
	case v.Within == "":
	case found:
		series = names + "," + v.Within + "}"
	default:
		series += "{" + v.Within + "}"
	}
	query := map[string]any{"query": "label_values(" + series + ", " + v.Key + ")", "refId": v.Name, "qryType": 1}
	b := dashboard.NewQueryVariableBuilder(v.Name).Label(v.Label).Datasource(source).
		Query(dashboard.StringOrMap{Map: query}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortNaturalAsc).
		IncludeAll(!v.Single).Multi(!v.Single)
	if !v.Single {
		// It also matches series without the label.
		b.AllValue(".*").Current(dashboard.VariableOption{
			Selected: new(true),
			Text:     dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
			Value:    dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
		})
	}
	return b
}

// options returns a variable with fixed options. If the text and the value of an option differ,
// a colon separates them.
func (v *Variable) options() cog.Builder[dashboard.VariableModel] {
	var list []dashboard.VariableOption
	for i, o := range v.Options {
		text, value, found := strings.Cut(o, " : ")
		if !found {
			value = text
		}
		list = append(list, option(text, value, i == 0))
	}
	return dashboard.NewCustomVariableBuilder(v.Name).Label(v.Label).
		Values(dashboard.StringOrMap{String: new(strings.Join(v.Options, ","))}).
		Options(list).Current(list[0])
}

func option(text, value string, selected bool) dashboard.VariableOption {
	return dashboard.VariableOption{
		Selected: &selected,
		Text:     dashboard.StringOrArrayOfString{String: &text},
		Value:    dashboard.StringOrArrayOfString{String: &value},
	}
}

// cumulative returns a hidden variable. Grafana's heat maps need cumulative buckets with the
// label le. VictoriaMetrics stores exponential histograms with the label vmrange, and has a
// function to convert them, which Prometheus lacks. The variable is the name of this function if
// such buckets exist, and empty otherwise.
func cumulative() cog.Builder[dashboard.VariableModel] {
	query := map[string]any{
		"query": `query_result(label_replace(count(nixl_transfer_duration_seconds_bucket{vmrange!=""}), "function", "prometheus_buckets", "", ""))`,
		"refId": "cumulative", "qryType": 3,
	}
	none := option("", "", true)
	return dashboard.NewQueryVariableBuilder("cumulative").Hide(dashboard.VariableHideHideVariable).Datasource(source).
		Query(dashboard.StringOrMap{Map: query}).Regex(`/function="([^"]+)"/`).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Options([]dashboard.VariableOption{none}).Current(none)
}
