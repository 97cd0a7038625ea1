// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/table"
)

// columns are the labels in a table, some with links to a dashboard.
var columns = []struct{ label, title, to, url string }{
	{label: "finding", title: "What"},
	{label: "k8s_cluster_name", title: "Cluster"},
	{label: "k8s_namespace_name", title: "Namespace"},
	{label: "service_name", title: "Job"},
	{label: "k8s_pod_name", title: "Pod"},
	{
		"host_name", "Host", "Agents of the host",
		"/d/nixl-overview?var-datasource=${datasource}&var-host=${__value.text}&${__url_time_range}",
	},
	{
		"nixl_agent_name", "Agent", "This agent",
		"/d/nixl-agent?var-datasource=${datasource}&var-host=${__data.fields.Host}&var-agent=${__value.text}&${__url_time_range}",
	},
}

// table returns a table with one line per host or agent, and a column for each query. The first
// query determines the order.
func (p *Panel) table() cog.Builder[dashboard.Panel] {
	names, order := map[string]any{}, map[string]any{}
	b := table.NewPanelBuilder().ShowHeader(true).CellHeight(common.TableCellHeightSm).MinWidth(80).
		SortBy([]cog.Builder[common.TableSortByFieldState]{
			common.NewTableSortByFieldStateBuilder().DisplayName(p.Queries[0].Legend).Desc(true),
		})
	for i, c := range columns {
		names[c.label], order[c.label] = c.title, i
		if c.url != "" {
			b.OverrideByName(c.title, []dashboard.DynamicConfigValue{
				{Id: "links", Value: []any{map[string]any{"title": c.to, "url": c.url}}},
			})
		}
	}
	if p.NoData != "" {
		b.NoValue(p.NoData)
	}
	for i, q := range p.Queries {
		value := "Value #" + string(rune('A'+i)) // Grafana's name of a query's value
		names[value], order[value] = q.Legend, len(columns)+i
		b.OverrideByName(q.Legend, []dashboard.DynamicConfigValue{
			{Id: "unit", Value: q.Unit.Grafana}, {Id: "custom.width", Value: q.Unit.width()},
		})
	}
	return b.
		WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
			"excludeByName": map[string]any{"Time": true}, "indexByName": order, "renameByName": names,
		}})
}

// width returns the width of a column in pixels. By default, columns have at least 150, and some
// are off the screen.
func (u Unit) width() int {
	switch u {
	case Share, Seconds:
		return 80
	case Time:
		return 170
	default:
		return 100
	}
}

// links returns links from the lines of a ranked panel to the dashboard of their agent or host.
func (p *Panel) links() []cog.Builder[dashboard.DashboardLink] {
	const agent, host = "/d/nixl-agent?", "/d/nixl-overview?"
	const of = "var-datasource=${datasource}&var-host=${__field.labels.host_name}&${__url_time_range}"
	title, url := "Agents of the host", host+of
	if strings.Contains(p.Queries[0].Legend, "nixl_agent_name") {
		title, url = "This agent", agent+of+"&var-agent=${__field.labels.nixl_agent_name}"
	}
	return []cog.Builder[dashboard.DashboardLink]{dashboard.NewDashboardLinkBuilder(title).Url(url)}
}
