package dashboards

import (
	"fmt"
	"strings"
)

func variables(list []Variable) []object {
	all := []object{{
		"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
		"hide": 0, "refresh": 1,
	}}
	for _, v := range list {
		if v.Options != nil {
			all = append(all, options(v))
			continue
		}
		series := v.Metric
		if v.Within != "" {
			series += "{" + v.Within + "}"
		}
		query := fmt.Sprintf("label_values(%s, %s)", series, v.Key)
		o := object{
			"name": v.Name, "label": v.Label, "type": "query", "datasource": source,
			"query":   object{"query": query, "refId": v.Name, "qryType": 1},
			"refresh": 2, "sort": 7, // with the time range; in natural order
			"includeAll": !v.Single, "multi": !v.Single,
		}
		if !v.Single {
			// Matches also where there is no such label.
			o["allValue"] = ".*"
			o["current"] = object{"selected": true, "text": []string{"All"}, "value": []string{"$__all"}}
		}
		all = append(all, o)
	}
	return all
}

// options is a variable whose values are known. One is written as its name, a
// colon and its value where the two differ.
func options(v Variable) object {
	var list []object
	for i, o := range v.Options {
		text, value, found := strings.Cut(o, " : ")
		if !found {
			value = text
		}
		list = append(list, object{"selected": i == 0, "text": text, "value": value})
	}
	return object{
		"name": v.Name, "label": v.Label, "type": "custom", "query": strings.Join(v.Options, ","),
		"options": list, "current": list[0], "includeAll": false, "multi": false,
	}
}

// selector picks the series that the variables choose.
func selector(list []Variable) string {
	var matchers []string
	for _, v := range list {
		switch {
		case v.Options != nil:
		case v.Single:
			matchers = append(matchers, fmt.Sprintf(`%s="$%s"`, v.Key, v.Name)) // Grafana escapes it as text
		default:
			matchers = append(matchers, fmt.Sprintf(`%s=~"$%s"`, v.Key, v.Name))
		}
	}
	return strings.Join(matchers, ",")
}
