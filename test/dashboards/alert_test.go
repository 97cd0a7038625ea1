//go:build linux

package dashboards

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/confmap"

	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// alerting are the agents of [fill] for which each alert is, or the host.
var alerting = map[string]string{
	"NIXLEventsLost":     "overflow-0",
	"NIXLEventsTaken":    "taken-0",
	"NIXLRingNearlyFull": "overflow-0",
	"NIXLCollectorGone":  "silent",
	"NIXLNoData":         "", // there is some
	"NIXLAgentGone":      "gone-0",
	"NIXLErrorBurst":     "failing-peer-0",
	"NIXLTransfersSlow":  "slow-0",
}

// TestAlertRules runs promtool's tests: when each alert fires, and when not.
func TestAlertRules(t *testing.T) {
	for _, args := range [][]string{
		{"check", "rules", "--lint-fatal", file(t, "dashboards", "alerts.yaml"), file(t, "dashboards", "rules.yaml")},
		{"test", "rules", "alerts_test.yaml"},
	} {
		out, err := exec.CommandContext(t.Context(), program(t, "PROMTOOL"), args...).CombinedOutput()
		if err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// Each alert leads to its section in the documentation, and there are no others.
func TestRunbooks(t *testing.T) {
	text, err := os.ReadFile(file(t, "docs", "alerts.md"))
	if err != nil {
		t.Fatal(err)
	}
	var sections []string
	for line := range strings.Lines(string(text)) {
		if title, found := strings.CutPrefix(line, "## "); found {
			sections = append(sections, strings.TrimSpace(title))
		}
	}
	rules := alerts(t)
	if got, want := slices.Sorted(slices.Values(sections)), slices.Sorted(maps.Keys(rules)); !slices.Equal(got, want) {
		t.Errorf("sections %v, want %v", got, want)
	}
	for name, r := range rules {
		const page = "https://github.com/nixl-otel/nixl-otel/blob/main/docs/alerts.md#"
		if r.Annotations["runbook_url"] != page+strings.ToLower(name) {
			t.Errorf("%s leads to %q", name, r.Annotations["runbook_url"])
		}
	}
}

// testAlerts checks that each alert is for its agent or host in the end, and
// never for one with which nothing is wrong.
func (b backend) testAlerts(t *testing.T) {
	rules := alerts(t)
	if want, got := slices.Sorted(maps.Keys(alerting)), slices.Sorted(maps.Keys(rules)); !slices.Equal(want, got) {
		t.Fatalf("alerts %v, want %v", got, want)
	}
	for name, r := range rules {
		t.Run(name, func(t *testing.T) {
			proc.Eventually(t, func() string { return b.alertsFor(t, r.Expr, alerting[name]) })
		})
	}
	if b.name == "Prometheus" {
		t.Run("evaluated", b.testEvaluated)
	}
}

// alertsFor says what is wrong with what an alert is for.
func (b backend) alertsFor(t *testing.T, expr, want string) string {
	t.Helper()
	list, err := b.query(t, expr)
	if err != nil {
		return fmt.Sprintf("%s: %v", expr, err)
	}
	var found []string
	for _, s := range list {
		name := s.labels["nixl_agent_name"]
		if name == "" {
			name = s.labels["host_name"]
		}
		found = append(found, name)
	}
	if slices.Contains(found, agent) || slices.Contains(found, host) {
		t.Fatalf("it is for one with which nothing is wrong, among %v", found)
	}
	if want == "" && len(found) == 0 || slices.Contains(found, want) {
		return ""
	}
	return fmt.Sprintf("it is for %v, want %q", found, want)
}

// rule is what the tests read of an alert.
type rule struct {
	Alert, Expr string
	Annotations map[string]string
}

// alerts are the alerts, by name.
func alerts(t *testing.T) map[string]rule {
	t.Helper()
	text, err := os.ReadFile(file(t, "dashboards", "alerts.yaml"))
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
	var rules struct {
		Groups []struct {
			Rules []rule
		}
	}
	remarshal(t, raw, &rules)
	byName := make(map[string]rule)
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			byName[r.Alert] = r
		}
	}
	return byName
}

// remarshal reads a tree of maps into a value.
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

// testEvaluated checks what Prometheus makes of the rules by itself: each waits
// for its time to pass, or fires, where there is something that it is for.
func (b backend) testEvaluated(t *testing.T) {
	proc.Eventually(t, func() string {
		text, err := b.get(t, "/api/v1/rules", nil)
		if err != nil {
			return err.Error()
		}
		var answer struct {
			Data struct {
				Groups []struct {
					Rules []struct {
						Name, Health, State, LastError string
					}
				}
			}
		}
		if err := json.Unmarshal(text, &answer); err != nil {
			return err.Error()
		}
		waiting := ""
		for _, g := range answer.Data.Groups {
			for _, r := range g.Rules {
				if r.Health == "err" {
					t.Fatalf("%s: %s", r.Name, r.LastError)
				}
				silent, quiet := r.State == "inactive", alerting[r.Name] == ""
				if r.State == "unknown" || r.State != "" && silent != quiet {
					waiting += fmt.Sprintf("%s is %s; ", r.Name, r.State)
				}
			}
		}
		return waiting
	})
}
