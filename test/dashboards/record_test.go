//go:build linux

package dashboards

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/dashboards"
)

// record works out the recording rules if an expression asks for one. It is
// what vmalert does for VictoriaMetrics; Prometheus does it by itself.
func (b backend) record(t *testing.T, expr string) {
	t.Helper()
	asks := func(r dashboards.Recorded) bool { return strings.Contains(expr, r.Name) }
	if b.name == "Prometheus" || !slices.ContainsFunc(dashboards.Rules(), asks) {
		return
	}
	var lines strings.Builder
	for _, r := range dashboards.Rules() {
		list, err := b.query(t, r.Expr)
		if err != nil {
			t.Fatalf("%s: %v", r.Name, err)
		}
		for _, s := range list {
			labels := fmt.Sprintf("kind=%q", r.Kind) // an empty label is none
			for k, v := range s.labels {
				labels += fmt.Sprintf(",%s=%q", k, v)
			}
			fmt.Fprintf(&lines, "%s{%s} %g\n", r.Name, labels, s.value)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/api/v1/import/prometheus", strings.NewReader(lines.String()))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		t.Fatalf("import: %s", response.Status)
	}
}
