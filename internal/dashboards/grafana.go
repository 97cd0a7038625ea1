// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// source is the variable of the data source.
var source = common.DataSourceRef{Type: new("prometheus"), Uid: new("${datasource}")}

// menu is the tag of the dashboards in the menu, which passes on the selected values. A dashboard
// with a variable that can have only one value isn't in it, because All may be selected.
const menu = "nixl-menu"

func (d *Dashboard) build() (dashboard.Dashboard, error) {
	tags := []string{"nixl"}
	if !slices.ContainsFunc(d.Variables, func(v Variable) bool { return v.Single }) {
		tags = append(tags, menu)
	}
	b := dashboard.NewDashboardBuilder(d.Title).Uid(d.UID).Description(d.Description).Tags(tags).
		Readonly().Version(1).Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Time("now-30m", "now").Refresh(cmp.Or(d.Refresh, "10s")).
		Link(dashboard.NewDashboardLinkBuilder("NIXL").Type(dashboard.DashboardLinkTypeDashboards).
			Tags([]string{menu}).AsDropdown(true).IncludeVars(true).KeepTime(true)).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus"))
	for _, v := range d.Variables {
		b.WithVariable(v.grafana())
	}
	heatmaps := false
	for _, r := range d.Rows {
		for _, p := range r.Panels {
			if p.Backend != nil {
				b.WithVariable(dashboard.NewDatasourceVariableBuilder(p.Backend.Name).Label(p.Backend.Title).Type(p.Backend.Type))
			}
			heatmaps = heatmaps || p.Kind == Heatmap
		}
	}
	if heatmaps {
		b.WithVariable(cumulative())
	}
	if err := d.addRows(b); err != nil {
		return dashboard.Dashboard{}, err
	}
	built, err := b.Build()
	for i := range built.Templating.List {
		if v := &built.Templating.List[i]; v.Hide != nil && *v.Hide == dashboard.VariableHideHideVariable {
			v.SkipUrlSync = new(true) // a link must not set what the backend determines
		}
	}
	return built, err
}

// annotations returns the annotations: the alerts about the selected hosts and agents, and, if
// agents can be selected, their restarts.
func (d *Dashboard) annotations() []map[string]any {
	const where = "{{k8s_namespace_name}} {{k8s_pod_name}} {{host_name}} {{nixl_agent_name}}"
	mark := func(name, color, expr, title string) map[string]any {
		return map[string]any{
			"name": name, "datasource": source, "enable": true, "iconColor": color, "expr": expr, "titleFormat": title, "textFormat": where, "tagKeys": "",
		}
	}
	list := []map[string]any{} // not null in JSON
	if about := d.alertsShown(); about != nil {
		expr := `ALERTS{alertname=~"NIXL.*",alertstate="firing",` + strings.Join(about, ",") + `}`
		list = append(list, mark("Alerts", "red", expr, "{{alertname}}"))
	}
	if strings.Contains(selector(d.Variables), "nixl_agent_name") {
		expr := fillIn(selector(d.Variables), ofAgents+`(increase(nixl_telemetry_ring_restarts_total{@}[1m])) > 0`)
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
	for _, r := range d.Rows {
		id++
		row := dashboard.NewRowBuilder(r.Title).Id(id).Collapsed(r.Optional)
		if !r.Optional {
			b.WithRow(row)
		}
		for i := range r.Panels {
			p := &r.Panels[i]
			panel, err := p.grafana(selector(d.Variables))
			if err != nil {
				return err
			}
			id++
			panel.Id, panel.GridPos = new(id), &dashboard.GridPos{W: cmp.Or(p.Width, 8), H: heights[p.Kind]}
			if r.Optional {
				row.WithPanel(placed(panel))
			} else {
				b.WithPanel(placed(panel))
			}
		}
		if r.Optional {
			b.WithRow(row)
		}
	}
	return nil
}

// placed is a panel that is built and has a size.
type placed dashboard.Panel

// Build returns the panel.
func (p placed) Build() (dashboard.Panel, error) { return dashboard.Panel(p), nil }

// heights has those of panels. The legend of a ranked panel shows 10 lines.
var heights = map[Kind]uint32{Lines: 9, Number: 4, Table: 12, Heatmap: 9, Logs: 10}

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
		text, value, _ := strings.Cut(o, " : ")
		list = append(list, option(text, cmp.Or(value, text), i == 0))
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
