package dashboards

// columns has a table show an agent's queries in one line, under their
// legends, and its name lead to the agent's own dashboard.
func (p *Panel) columns(panel object) {
	names := object{"host_name": "Host", "nixl_agent_name": "Agent"}
	order := object{"nixl_agent_name": 0, "host_name": 1}
	overrides := []object{{
		"matcher": object{"id": "byName", "options": "Agent"},
		"properties": []object{{"id": "links", "value": []object{{
			"title": "One agent",
			"url": "/d/nixl-agent?var-datasource=${datasource}&var-host=${__data.fields.Host}" +
				"&var-agent=${__value.text}&${__url_time_range}",
		}}}},
	}}
	for i, q := range p.Queries {
		value := "Value #" + string(rune('A'+i)) // Grafana's name for what a query gives
		names[value] = q.Legend
		order[value] = i + 2
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
