//go:build linux

package dashboards

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"testing"

	"go.opentelemetry.io/collector/confmap"

	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// alerting are the agents of [fill] for which each alert is.
var alerting = map[string]string{
	"NIXLEventsLost":     "overflow-0",
	"NIXLRingNearlyFull": "overflow-0",
	"NIXLAgentGone":      "gone-0",
	"NIXLErrorBurst":     "failing-peer-0",
	"NIXLTransfersSlow":  "slow-0",
}

// TestAlertRules runs promtool's tests: when each alert fires, and when not.
func TestAlertRules(t *testing.T) {
	for _, args := range [][]string{
		{"check", "rules", "--lint-fatal", file(t, "dashboards", "alerts.yaml")},
		{"test", "rules", "alerts_test.yaml"},
	} {
		out, err := exec.CommandContext(t.Context(), program(t, "PROMTOOL"), args...).CombinedOutput()
		if err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// testAlerts checks that each alert is for its agent in the end, and never for
// one with which nothing is wrong.
func (b backend) testAlerts(t *testing.T) {
	rules := alerts(t)
	if want, got := slices.Sorted(maps.Keys(alerting)), slices.Sorted(maps.Keys(rules)); !slices.Equal(want, got) {
		t.Fatalf("alerts %v, want %v", got, want)
	}
	for name, expr := range rules {
		t.Run(name, func(t *testing.T) {
			proc.Eventually(t, func() string {
				list, err := b.query(t, expr)
				if err != nil {
					return fmt.Sprintf("%s: %v", expr, err)
				}
				var agents []string
				for _, s := range list {
					agents = append(agents, s.labels["nixl_agent_name"])
				}
				if slices.Contains(agents, agent) {
					t.Fatalf("it is for an agent with which nothing is wrong, among %v", agents)
				}
				if !slices.Contains(agents, alerting[name]) {
					return fmt.Sprintf("it is for %v, want %s", agents, alerting[name])
				}
				return ""
			})
		})
	}
	if b.name == "Prometheus" {
		t.Run("evaluated", b.testEvaluated)
	}
}

// alerts are the expressions of the alerts, by name.
func alerts(t *testing.T) map[string]string {
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
			Rules []struct{ Alert, Expr string }
		}
	}
	remarshal(t, raw, &rules)
	byName := make(map[string]string)
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			byName[r.Alert] = r.Expr
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
// for its time to pass, or fires.
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
				if r.State == "inactive" || r.State == "unknown" {
					waiting += fmt.Sprintf("%s is %s; ", r.Name, r.State)
				}
			}
		}
		return waiting
	})
}
