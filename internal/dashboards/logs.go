// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/logs"
	"github.com/grafana/grafana-foundation-sdk/go/loki"
)

// slowTransfers returns rows with the log records of an agent's slow transfers. These are the records with a size:
// backends don't all store the names of events. Loki replaces the dots of attributes, and requires a
// label that isn't empty.
func slowTransfers() []Row {
	row := func(backend LogsBackend, expr string) Row {
		const noRecords = "No slow transfers, or the receiver isn't in a logs pipeline"
		return Row{Title: "Slow transfers (needs " + backend.Title + ")", Panels: []Panel{{
			Title: "Slow transfers in " + backend.Title, Kind: Logs, Width: 24, NoData: noRecords, Backend: &backend, Queries: []Query{{Expr: expr}},
			Description: "Log records of the agent's slow transfers. Needs the receiver in a logs pipeline, and a data source for " + backend.Title + ".",
		}}, Optional: true}
	}
	return []Row{
		row(LogsBackend{Title: "Loki", Type: "loki", Name: "loki"},
			"{service_name=~`.+`} | nixl_agent_name=`$agent` | host_name=`$host` | nixl_transfer_size!=``"),
		row(LogsBackend{Title: "VictoriaLogs", Type: "victoriametrics-logs-datasource", Name: "victorialogs"},
			`"nixl.agent.name":="$agent" "host.name":="$host" "nixl.transfer.size":*`),
	}
}

// source refers to the variable of the data source.
func (b *LogsBackend) source() common.DataSourceRef {
	return common.DataSourceRef{Type: &b.Type, Uid: new("${" + b.Name + "}")}
}

// logsBackends returns variables that select the data sources of a dashboard's log records.
func (d *Dashboard) logsBackends() (list []cog.Builder[dashboard.VariableModel]) {
	for _, r := range d.Rows {
		for i := range r.Panels {
			if b := r.Panels[i].Backend; b != nil {
				list = append(list, dashboard.NewDatasourceVariableBuilder(b.Name).Label(b.Title).Type(b.Type))
			}
		}
	}
	return list
}

func (p *Panel) logs() cog.Builder[dashboard.Panel] {
	return logs.NewPanelBuilder().ShowTime(true).WrapLogMessage(true).EnableLogDetails(true).
		SortOrder(common.LogsSortOrderDescending).NoValue(p.NoData)
}

// logsTargets returns the queries of a panel of log records. The data source of VictoriaLogs has the fields of
// Loki's that are used here.
func (p *Panel) logsTargets() (list []variants.Dataquery, err error) {
	for _, q := range p.Queries {
		built, err := loki.NewDataqueryBuilder().RefId("A").Datasource(p.Backend.source()).Expr(q.Expr).MaxLines(mostRecords).Build()
		if err != nil {
			return nil, err
		}
		list = append(list, built)
	}
	return list, nil
}

// mostRecords limits the number of log records in a panel.
const mostRecords = 500
