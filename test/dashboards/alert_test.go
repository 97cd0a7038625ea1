// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dashboards

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
)

// alerting maps alerts to an agent, host or Collector of [fill] that they must report. The others compare with minutes
// of the past, so what they report depends on how long the test takes: any agent that isn't healthy, or none.
var alerting = map[string]string{
	"NIXLEventsLost":      "overflow-0",
	"NIXLEventsTaken":     "taken-0",
	"NIXLRingNearlyFull":  "", // agents that lose events have another alert
	"NIXLRingsRefused":    "invalid",
	"NIXLCheckpointsFail": "failing-storage",
	"NIXLNoData":          "", // there is data
	"NIXLStraggler":       "straggler-3",
	"NIXLErrors":          "nixl", // the job
}

func TestRulesAndAlertsAreValid(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), built.Path(t, "PROMTOOL"), "check", "rules", "--lint-fatal",
		file(t, "dashboards", "alerts.yaml"), file(t, "dashboards", "rules.yaml")).CombinedOutput()
	if err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

func TestEachAlertLinksToItsSectionOfTheDocumentation(t *testing.T) {
	text, err := os.ReadFile(file(t, "docs", "alerts.md"))
	must.OK(t, err)
	var sections []string
	for line := range strings.Lines(string(text)) {
		if title, found := strings.CutPrefix(line, "## "); found {
			sections = append(sections, strings.TrimSpace(title))
		}
	}
	alerts := alerts(t)
	if got, want := slices.Sorted(slices.Values(sections)), slices.Sorted(maps.Keys(alerts)); !slices.Equal(got, want) {
		t.Errorf("sections %v, want %v", got, want)
	}
	for name, r := range alerts {
		const page = "https://github.com/nixl-otel/nixl-otel/blob/main/docs/alerts.md#"
		if r.Annotations["runbook_url"] != page+strings.ToLower(name) {
			t.Errorf("%s links to %q", name, r.Annotations["runbook_url"])
		}
	}
}

// alerts returns the alerts, by name.
func alerts(t *testing.T) map[string]rule {
	t.Helper()
	byName := make(map[string]rule)
	for _, r := range rules(t, "alerts.yaml") {
		byName[r.Alert] = r
	}
	return byName
}

// Whoever is alerted must find the transfers behind the alert.
func TestAlertsAboutTransfersNameTheLogTheCommandAndTheDashboard(t *testing.T) {
	for name, a := range alerts(t) {
		dashboard, description := a.Annotations["dashboard"], a.Annotations["description"]
		if !strings.HasPrefix(dashboard, "/d/nixl-") {
			t.Errorf("%s: dashboard %q", name, dashboard)
		}
		for _, label := range []string{"k8s_cluster_name", "k8s_namespace_name", "service_name"} {
			if strings.Contains(a.Annotations["summary"], "service_name") && !strings.Contains(dashboard, label) {
				t.Errorf("%s: the link doesn't select the %s: %s", name, label, dashboard)
			}
		}
		if about := a.Annotations["summary"]; strings.Contains(about, "host_name") || strings.Contains(about, "service_name") {
			command, then, _ := strings.Cut(a.Annotations["command"], "; ")
			if !strings.HasPrefix(command, "kubectl -n nixl get pods -o wide --field-selector spec.nodeName=") || then != "kubectl -n nixl exec POD -- nixlring why" {
				t.Errorf("%s: the command doesn't find the Collector's pod of the host: %s; %s", name, command, then)
			}
		}
		for _, part := range []string{"nixlring", "slow-transfer log"} {
			if ofTransfers.MatchString(name) && !strings.Contains(description, part) {
				t.Errorf("%s doesn't name %s: %s", name, part, description)
			}
		}
	}
}

var ofTransfers = regexp.MustCompile("Straggler|Slower|Stalled|Errors|Smaller")

// testAlerts checks that each alert eventually reports its agent, host or
// Collector, and never a healthy one.
func (b backend) testAlerts(t *testing.T) {
	alerts := alerts(t)
	for name := range alerting {
		if alerts[name].Expr == "" {
			t.Errorf("there is no alert %s", name)
		}
	}
	for name, r := range alerts {
		t.Run(name, func(t *testing.T) {
			must.Eventually(t, func() string { return b.alertsFor(t, name, r.Expr) })
		})
	}
}

// alertsFor returns "" if an alert reports what it must. It fails the test if the alert
// reports a healthy agent or host.
func (b backend) alertsFor(t *testing.T, alert, expr string) string {
	t.Helper()
	list, err := b.query(t, expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	var found []string
	for _, s := range list {
		name := ""
		for _, label := range []string{"nixl_agent_name", "host_name", "service_name", "reason", "service_instance_id"} {
			if name == "" {
				name = s.labels[label]
			}
		}
		found = append(found, name)
	}
	if slices.Contains(found, agent) || slices.Contains(found, host) {
		t.Fatalf("the alert reports %v, which includes a healthy one", found)
	}
	if want, certain := alerting[alert]; !certain || want == "" && len(found) == 0 || slices.Contains(found, want) {
		return ""
	}
	return fmt.Sprintf("the alert reports %v, want %q: %s", found, alerting[alert], expr)
}
