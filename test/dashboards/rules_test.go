// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dashboards

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/confmap"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// rule has the fields of an alert or a recording rule that the tests use.
type rule struct {
	Alert       string            `json:"alert,omitempty"`
	Record      string            `json:"record,omitempty"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// rules returns the rules of a file, in order.
func rules(t *testing.T, name string) (list []rule) {
	t.Helper()
	text, err := os.ReadFile(file(t, "dashboards", name))
	must.OK(t, err)
	parsed, err := confmap.NewRetrievedFromYAML(text)
	must.OK(t, err)
	raw, err := parsed.AsRaw()
	must.OK(t, err)
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
	must.OK(t, err)
	must.OK(t, json.Unmarshal(text, into))
}

// recordRules evaluates the recording rules about once a second and stores the results in
// VictoriaMetrics, as vmalert does, until the test ends. Prometheus evaluates them itself.
func (b backend) recordRules(t *testing.T) {
	t.Helper()
	all, done := rules(t, "rules.yaml"), make(chan struct{})
	go func() {
		defer close(done)
		pause := time.NewTimer(0)
		defer pause.Stop()
		for {
			select {
			case <-pause.C:
			case <-t.Context().Done():
				return
			}
			for _, r := range all {
				if err := b.record(t, r); err != nil && t.Context().Err() == nil {
					t.Errorf("record %s: %v", r.Record, err)
				}
			}
			pause.Reset(time.Second)
		}
	}()
	t.Cleanup(func() { <-done })
}

// record evaluates a recording rule and stores the result.
func (b backend) record(t *testing.T, r rule) error {
	list, err := b.query(t, r.Expr)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, s := range list {
		var labels []string
		for k, v := range r.Labels {
			labels = append(labels, fmt.Sprintf("%s=%q", k, v))
		}
		for k, v := range s.labels {
			if k != "__name__" { // of the series that the expression filters
				labels = append(labels, fmt.Sprintf("%s=%q", k, v))
			}
		}
		fmt.Fprintf(&lines, "%s{%s} %g\n", r.Record, strings.Join(labels, ","), s.value)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/api/v1/import/prometheus", strings.NewReader(lines.String()))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		err = errors.New(response.Status)
	}
	return errors.Join(err, response.Body.Close())
}
