package dashboards_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/dashboards"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// promName is what Prometheus calls a metric of the catalog.
func promName(m semconv.Metric) string {
	name := strings.ReplaceAll(m.Name, ".", "_")
	switch m.Unit {
	case "s":
		name += "_seconds"
	case "By":
		name += "_bytes"
	case "By/s":
		name += "_bytes_per_second"
	case "1":
		if m.Kind == semconv.Gauge {
			name += "_ratio"
		}
	default: // {event}
	}
	if m.Kind == semconv.Counter {
		name += "_total"
	}
	return name
}

// known are the names of all series that the project's metrics have.
func known() map[string]bool {
	names := make(map[string]bool)
	for _, m := range slices.Concat(semconv.NIXL(), semconv.RingKernel(), semconv.SplitInference()) {
		name := promName(m)
		if m.Kind != semconv.Histogram {
			names[name] = true
			continue
		}
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			names[name+part] = true
		}
	}
	return names
}

// Queries ask for metrics of the catalog only, and by labels that those have.
func TestNames(t *testing.T) {
	names, labels := known(), []string{"le", "host_name", "service_name", "nixl_agent_name", "kind"}
	for _, m := range slices.Concat(semconv.NIXL(), semconv.RingKernel(), semconv.SplitInference()) {
		for _, a := range slices.Concat(m.Attributes, m.Conditional) {
			labels = append(labels, strings.ReplaceAll(a, ".", "_"))
		}
	}
	word, legend := regexp.MustCompile(`\b((nixl|ringkernel|splitinfer)_|host\w*:)[\w:]+`), regexp.MustCompile(`{{(\w+)}}`)
	for _, r := range dashboards.Rules() {
		for _, w := range word.FindAllString(r.Expr, -1) {
			if !names[w] && !slices.Contains(labels, w) {
				t.Errorf("%s: %q is neither a metric nor a label", r.Name, w)
			}
		}
	}
	for _, r := range dashboards.Rules() {
		names[r.Name] = true
	}
	for _, d := range dashboards.Grafana() {
		for _, v := range d.Variables {
			if v.Options == nil && (!names[v.Metric] || !slices.Contains(labels, v.Key)) {
				t.Errorf("%s: variable %s is %s of %s", d.UID, v.Name, v.Key, v.Metric)
			}
		}
		for _, r := range d.Rows {
			for _, p := range r.Panels {
				for _, q := range p.Queries {
					for _, w := range word.FindAllString(q.Expr+q.Rank, -1) {
						if !names[w] && !slices.Contains(labels, w) {
							t.Errorf("%s: %s: %q is neither a metric nor a label", d.UID, p.Title, w)
						}
					}
					for _, m := range legend.FindAllStringSubmatch(q.Legend, -1) {
						if !slices.Contains(labels, m[1]) {
							t.Errorf("%s: %s: no label %q for the legend", d.UID, p.Title, m[1])
						}
					}
				}
			}
		}
	}
}

// A reader can tell what each panel shows, and each query obeys the variables:
// lines of agents have both of their names, and there are as many as is chosen.
func TestPanels(t *testing.T) {
	for _, d := range dashboards.Grafana() {
		titles := make(map[string]bool)
		for _, r := range d.Rows {
			for _, p := range r.Panels {
				if p.Title == "" || p.Description == "" || p.Unit == (dashboards.Unit{}) && p.Kind != dashboards.Table {
					t.Errorf("%s: panel %q of %q has no title, description or unit", d.UID, p.Title, r.Title)
				}
				if titles[r.Title+p.Title] {
					t.Errorf("%s: two panels %q in %q", d.UID, p.Title, r.Title)
				}
				titles[r.Title+p.Title] = true
				for _, q := range p.Queries {
					if !strings.Contains(q.Expr, "{@") {
						t.Errorf("%s: %s: the variables don't matter to %s", d.UID, p.Title, q.Expr)
					}
					each := regexp.MustCompile(`by \(.*(host_name|nixl_agent_name)`).MatchString(q.Expr)
					chosen := slices.ContainsFunc(d.Variables, func(v dashboards.Variable) bool { return v.Name == "top" })
					if each && chosen && q.Rank == "" || q.Rank != "" && !chosen {
						t.Errorf("%s: %s: series of each host or agent aren't a choice of them: %s", d.UID, p.Title, q.Expr)
					}
					if strings.Contains(q.Legend, "nixl_agent_name") && !strings.Contains(q.Legend, "host_name") {
						t.Errorf("%s: %s: legend %q doesn't say which host's agent", d.UID, p.Title, q.Legend)
					}
				}
			}
		}
	}
}

// Nothing of the templates is left in a file.
func TestFiles(t *testing.T) {
	files, err := dashboards.Files()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(dashboards.Grafana())+2 {
		t.Errorf("%d files: %v", len(files), slices.Sorted(maps.Keys(files)))
	}
	for name, text := range files {
		for _, left := range []string{"{@", "[@]", "now(", "{,", ",}", `\u003`} {
			if strings.Contains(string(text), left) {
				t.Errorf("%s: %q is left", name, left)
			}
		}
		if strings.HasPrefix(name, "victoriametrics/") && strings.Contains(string(text), "$") {
			t.Errorf("%s: there are no variables", name)
		}
	}
}
