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
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

func (p *Panel) kind() Kind {
	if p.Kind == "" {
		return Lines
	}
	return p.Kind
}

func (p *Panel) ranked() bool { return p.Queries[0].Rank != "" }

func (p *Panel) grafana(selector string) (dashboard.Panel, error) {
	var b cog.Builder[dashboard.Panel]
	switch p.kind() {
	case Number:
		b = p.stat()
	case Table:
		b = p.table()
	case Heatmap:
		b = p.heatmap()
	case Logs:
		b = p.logs()
	case Lines:
		b = p.timeSeries()
	}
	panel, err := b.Build()
	if err != nil {
		return panel, err
	}
	panel.Title, panel.Description, panel.Datasource = &p.Title, &p.Description, &source
	if p.Kind == Logs {
		panel.Datasource = new(p.Backend.source())
		panel.Targets, err = p.logsTargets()
		return panel, err
	}
	panel.Targets, err = p.targets(selector)
	return panel, err
}

func (p *Panel) targets(selector string) (list []variants.Dataquery, err error) {
	in := terms{selector: selector, window: "$__rate_interval", whole: "$__range", top: "$top"}
	for i := range p.Queries {
		q := &p.Queries[i]
		b := prometheus.NewDataqueryBuilder().RefId(string(rune('A' + i))).Datasource(source).
			EditorMode(prometheus.QueryEditorModeCode).Range().Expr(q.promQL(in))
		switch p.kind() {
		case Number, Logs:
		case Table:
			b.Instant().Format(prometheus.PromQueryFormatTable)
		case Heatmap:
			b.Format(prometheus.PromQueryFormatHeatmap).LegendFormat(q.Legend)
		case Lines:
			b.LegendFormat(q.Legend)
		}
		built, err := b.Build()
		if err != nil {
			return nil, err
		}
		list = append(list, built)
	}
	return list, nil
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
