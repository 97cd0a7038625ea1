// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dashboards

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/confmap"
)

// rule has the fields of an alert or a recording rule that the tests use.
type rule struct {
	Alert, Record, Expr string
	Labels, Annotations map[string]string
}

// rules returns the rules of a file, in order.
func rules(t *testing.T, name string) (list []rule) {
	t.Helper()
	text, err := os.ReadFile(file(t, "dashboards", name))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := confmap.NewRetrievedFromYAML(text)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := parsed.AsRaw()
	if err != nil {
		t.Fatal(err)
	}
	var groups struct {
		Groups []struct{ Rules []rule }
	}
	remarshal(t, raw, &groups)
	for _, g := range groups.Groups {
		list = append(list, g.Rules...)
	}
	if len(list) == 0 {
		t.Fatalf("%s: no rules", name)
	}
	return list
}

// remarshal converts a tree of maps to a value.
func remarshal(t *testing.T, tree, into any) {
	t.Helper()
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// record evaluates the recording rules that an expression uses, and stores the
// result in VictoriaMetrics, as vmalert does. Prometheus evaluates them itself.
func (b backend) record(t *testing.T, expr string) {
	t.Helper()
	if b.name == "Prometheus" {
		return
	}
	all := rules(t, "rules.yaml")
	used := make([]bool, len(all))
	for i, r := range slices.Backward(all) { // a rule uses only those before it
		if used[i] = strings.Contains(expr, r.Record); used[i] {
			expr += r.Expr
		}
	}
	for i, r := range all {
		if !used[i] {
			continue
		}
		list, err := b.query(t, r.Expr)
		if err != nil {
			t.Fatalf("%s: %v", r.Record, err)
		}
		var lines strings.Builder
		for _, s := range list {
			var labels []string
			for k, v := range r.Labels {
				labels = append(labels, fmt.Sprintf("%s=%q", k, v))
			}
			for k, v := range s.labels {
				labels = append(labels, fmt.Sprintf("%s=%q", k, v))
			}
			fmt.Fprintf(&lines, "%s{%s} %g\n", r.Record, strings.Join(labels, ","), s.value)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/api/v1/import/prometheus", strings.NewReader(lines.String()))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if response.StatusCode/100 != 2 {
			t.Fatalf("import: %s", response.Status)
		}
	}
}
