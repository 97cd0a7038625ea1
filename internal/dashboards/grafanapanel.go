// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/loki"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

func (p *Panel) ranked() bool { return p.Queries[0].Rank != "" }

func (p *Panel) grafana(selector string) (dashboard.Panel, error) {
	panel, err := [...]func() cog.Builder[dashboard.Panel]{
		Lines: p.timeSeries, Number: p.stat, Table: p.table, Heatmap: p.heatmap, Logs: p.logs,
	}[p.Kind]().Build()
	if err != nil {
		return panel, err
	}
	panel.Title, panel.Description, panel.Datasource = &p.Title, &p.Description, new(p.source())
	for i := range p.Queries {
		target, err := p.target(selector, &p.Queries[i], string(rune('A'+i)))
		if err != nil {
			return panel, err
		}
		panel.Targets = append(panel.Targets, target)
	}
	return panel, nil
}

// target returns a query. The data source of VictoriaLogs has the fields of Loki's that are used here.
func (p *Panel) target(selector string, q *Query, ref string) (variants.Dataquery, error) {
	if p.Kind == Logs {
		return loki.NewDataqueryBuilder().RefId(ref).Datasource(p.source()).Expr(q.Expr).MaxLines(500).Build()
	}
	b := prometheus.NewDataqueryBuilder().RefId(ref).Datasource(source).EditorMode(prometheus.QueryEditorModeCode).Range().Expr(q.promQL(selector))
	switch p.Kind {
	case Number, Logs:
	case Table:
		b.Instant().Format(prometheus.PromQueryFormatTable)
	case Heatmap:
		b.Format(prometheus.PromQueryFormatHeatmap).LegendFormat(q.Legend)
	case Lines:
		b.LegendFormat(q.Legend)
	}
	return b.Build()
}

func (p *Panel) timeSeries() cog.Builder[dashboard.Panel] {
	b := timeseries.NewPanelBuilder().Unit(p.Unit.Grafana).Min(0).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdPaletteClassic)).
		LineWidth(1).FillOpacity(10).ShowPoints(common.VisibilityModeNever).
		SpanNulls(common.BoolOrFloat64{Float64: cog.ToPtr[float64](60000)}). // ms; a point may be missing
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	legend := common.NewVizLegendOptionsBuilder().ShowLegend(true)
	if p.Many || p.ranked() {
		width := 320.
		if p.Width == 24 {
			width = 480
		}
		// Sort the legend by rank.
		legend.DisplayMode(common.LegendDisplayModeTable).Placement(common.LegendPlacementRight).Width(width).
			Calcs([]string{"mean", "max"}).SortBy("Mean").SortDesc(!p.Queries[0].Lowest)
		b.FillOpacity(0)
	} else {
		legend.DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).Calcs([]string{})
	}
	if p.ranked() && strings.Contains(p.Queries[0].Legend, byHost) {
		b.DataLinks(p.links())
	}
	if p.NoData != "" {
		b.NoValue(p.NoData)
	}
	if p.Stacked {
		b.Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A"))
	}
	switch {
	case p.Max > 0:
		b.Max(p.Max)
	case p.Unit.Least > 0:
		b.AxisSoftMax(p.Unit.Least)
	}
	return b.Legend(legend)
}

func (p *Panel) stat() cog.Builder[dashboard.Panel] {
	steps := []dashboard.Threshold{{Color: "green"}}
	if p.Bad > 0 {
		steps = append(steps, dashboard.Threshold{Color: "red", Value: new(p.Bad)})
	}
	return stat.NewPanelBuilder().Unit(p.Unit.Grafana).Min(0).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds)).
		Thresholds(dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)).
		ColorMode(common.BigValueColorModeValue).GraphMode(common.BigValueGraphModeNone).
		TextMode(common.BigValueTextModeValue).Orientation(common.VizOrientationAuto).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}))
}

func (p *Panel) heatmap() cog.Builder[dashboard.Panel] {
	return heatmap.NewPanelBuilder().Unit(p.Unit.Grafana).CellGap(1).
		YAxis(heatmap.NewYAxisConfigBuilder().Unit(p.Unit.Grafana)).
		CellValues(heatmap.NewCellValuesBuilder().Unit(Requests.Grafana)).
		Color(heatmap.NewHeatmapColorOptionsBuilder().Mode(heatmap.HeatmapColorModeScheme).
			Scheme("Spectral").Fill("dark-orange").Steps(64).Exponent(0.5)).
		Mode(common.TooltipDisplayModeSingle).ShowYHistogram().ShowLegend()
}
