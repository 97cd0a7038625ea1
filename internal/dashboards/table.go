package dashboards

// leads are the dashboards that a name in a table leads to, by the label that
// holds the name.
var leads = []struct{ label, title, to, url string }{
	{"host_name", "Host", "Agents of the host", "/d/nixl-agents?var-datasource=${datasource}&var-host=${__value.text}&${__url_time_range}"},
	{
		"nixl_agent_name", "Agent", "One agent",
		"/d/nixl-agent?var-datasource=${datasource}&var-host=${__data.fields.Host}&var-agent=${__value.text}&${__url_time_range}",
	},
}

// columns has a table show all that its queries tell of a host or an agent in
// one line, under their legends, and names lead on.
func (p *Panel) columns(panel object) {
	names, order := object{}, object{}
	var overrides []object
	for i, l := range leads {
		names[l.label], order[l.label] = l.title, i
		overrides = append(overrides, object{
			"matcher":    object{"id": "byName", "options": l.title},
			"properties": []object{{"id": "links", "value": []object{{"title": l.to, "url": l.url}}}},
		})
	}
	for i, q := range p.Queries {
		value := "Value #" + string(rune('A'+i)) // Grafana's name for what a query gives
		names[value], order[value] = q.Legend, len(leads)+i
		overrides = append(overrides, object{
			"matcher":    object{"id": "byName", "options": q.Legend},
			"properties": []object{{"id": "unit", "value": q.Unit.Grafana}},
		})
	}
	panel["transformations"] = []object{
		{"id": "merge", "options": object{}},
		{"id": "organize", "options": object{
			"excludeByName": object{"Time": true}, "indexByName": order, "renameByName": names,
		}},
	}
	panel["fieldConfig"] = object{"defaults": object{"min": 0}, "overrides": overrides}
}
