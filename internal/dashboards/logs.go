// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/logs"
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

// source refers to the variable of the panel's data source.
func (p *Panel) source() common.DataSourceRef {
	if p.Backend == nil {
		return source
	}
	return common.DataSourceRef{Type: &p.Backend.Type, Uid: new("${" + p.Backend.Name + "}")}
}

func (p *Panel) logs() cog.Builder[dashboard.Panel] {
	return logs.NewPanelBuilder().ShowTime(true).WrapLogMessage(true).EnableLogDetails(true).
		SortOrder(common.LogsSortOrderDescending).NoValue(p.NoData)
}
