package dashboards

// object is one of JSON; its keys are written in order.
type object map[string]any

// schema is the version of Grafana's own format: that of Grafana 11, which
// newer ones take and bring up to date.
const schema = 39

// source is the variable that holds the data source.
var source = object{"type": "prometheus", "uid": "${datasource}"}

func newGrafana(d Dashboard) object {
	refresh := d.Refresh
	if refresh == "" {
		refresh = "10s"
	}
	return object{
		"uid": d.UID, "title": d.Title, "description": d.Description, "tags": []string{"nixl"},
		"schemaVersion": schema, "version": 1, "editable": true, "graphTooltip": 1, // one cross-hair for all
		"time": object{"from": "now-30m", "to": "now"}, "refresh": refresh, "timezone": "",
		"annotations": object{"list": []object{}},
		"links": []object{{
			"type": "dashboards", "tags": []string{"nixl"}, "title": "NIXL", "asDropdown": true,
			"includeVars": true, "keepTime": true, "icon": "", "tooltip": "",
		}},
		"templating": object{"list": variables(d.Variables)},
		"panels":     grid(d),
	}
}

// grid lays the panels out, row by row, in 24 columns.
func grid(d Dashboard) []object {
	var list []object
	y := 0
	place := func(o object, x, w, h int) {
		o["id"] = len(list) + 1
		o["gridPos"] = object{"x": x, "y": y, "w": w, "h": h}
		list = append(list, o)
	}
	for _, r := range d.Rows {
		place(object{"type": "row", "title": r.Title, "collapsed": false, "panels": []object{}}, 0, 24, 1)
		y++
		x, line := 0, 0 // line is the height of the panels beside each other
		for i := range r.Panels {
			p := &r.Panels[i]
			w, h := p.Width, p.height()
			if w == 0 {
				w = 8
			}
			if x+w > 24 {
				x, y, line = 0, y+line, 0
			}
			place(p.grafana(selector(d.Variables)), x, w, h)
			x, line = x+w, max(line, h)
		}
		y += line
	}
	return list
}

func (p *Panel) height() int {
	switch p.Kind {
	case Number:
		return 4
	case Table:
		return 10
	default:
		return 8
	}
}

// ranked says whether the panel shows a choice of many series.
func (p *Panel) ranked() bool { return p.Queries[0].Rank != "" }

func (p *Panel) kind() Kind {
	if p.Kind == "" {
		return Lines
	}
	return p.Kind
}

func (p *Panel) grafana(selector string) object {
	o := object{
		"type": p.kind(), "title": p.Title, "description": p.Description, "datasource": source,
		"targets":     p.targets(selector),
		"fieldConfig": object{"defaults": p.defaults(), "overrides": []object{}},
		"options":     p.options(),
	}
	if p.Kind == Table {
		p.columns(o)
	}
	return o
}

func (p *Panel) targets(selector string) (list []object) {
	in := terms{selector: selector, window: "$__rate_interval", whole: "$__range", top: "$top"}
	for i, q := range p.Queries {
		t := object{
			"refId": string(rune('A' + i)), "datasource": source, "editorMode": "code", "range": true,
			"expr": q.promQL(in, Unit{}), "legendFormat": q.Legend,
		}
		switch p.Kind {
		case Number:
			t["legendFormat"] = ""
		case Table:
			t["format"], t["instant"], t["range"] = "table", true, false
		case Heatmap:
			t["format"] = "heatmap"
		default:
		}
		list = append(list, t)
	}
	return list
}

func (p *Panel) defaults() object {
	steps := []object{{"color": "green", "value": nil}}
	if p.Bad > 0 {
		steps = append(steps, object{"color": "red", "value": p.Bad})
	}
	o := object{
		"unit": p.Unit.Grafana, "min": 0, "color": object{"mode": "palette-classic"},
		"thresholds": object{"mode": "absolute", "steps": steps},
	}
	switch {
	case p.Kind == Number:
		o["color"] = object{"mode": "thresholds"}
	case p.kind() == Lines:
		stacking := "none"
		if p.Stacked {
			stacking = "normal"
		}
		opacity := 10
		if p.ranked() {
			opacity = 0 // there are too many of them
		}
		o["custom"] = object{
			"lineWidth": 1, "fillOpacity": opacity, "showPoints": "never",
			"spanNulls": 60000, // ms; a point may be missing
			"stacking":  object{"mode": stacking, "group": "A"},
		}
	}
	if p.Max > 0 {
		o["max"] = p.Max
	}
	return o
}

func (p *Panel) options() object {
	switch p.kind() {
	case Number:
		return object{
			"colorMode": "value", "graphMode": "area", "textMode": "value", "orientation": "auto",
			"reduceOptions": object{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
		}
	case Table:
		return object{"showHeader": true, "cellHeight": "sm"}
	case Heatmap:
		return object{
			"calculate": false, "cellGap": 1, "yAxis": object{"unit": p.Unit.Grafana},
			"color":   object{"mode": "scheme", "scheme": "Spectral", "steps": 64, "exponent": 0.5, "fill": "dark-orange", "reverse": false},
			"tooltip": object{"mode": "single", "yHistogram": true}, "legend": object{"show": true},
		}
	default:
		legend := object{"displayMode": "list", "placement": "bottom", "showLegend": true}
		if p.ranked() {
			// In the order that they were chosen by.
			legend = object{
				"displayMode": "table", "placement": "right", "showLegend": true, "width": 320,
				"calcs": []string{"mean", "max"}, "sortBy": "Mean", "sortDesc": true,
			}
		}
		return object{
			"legend":  legend,
			"tooltip": object{"mode": "multi", "sort": "desc"},
		}
	}
}
