// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kube

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// showsAgents fails the test unless nixlring in the Collector's container shows each rank of the workloads,
// with its pod, container and rank. It observes rings, so totals lack what the Collector took before.
func (c *chart) showsAgents(t *testing.T, workloads ...*workload) {
	t.Helper()
	for _, w := range workloads {
		text := kubectl(t, c.inCollector(t, w,
			"top", "--window", "1s", "--output", "json")...)
		var frame struct {
			Agents []struct {
				Path       string            `json:"path"`
				Attributes map[string]string `json:"attributes"`
			} `json:"agents"`
		}
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &frame); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		found := make(map[string]bool)
		for _, a := range frame.Agents {
			if a.Attributes["k8s.pod.uid"] != w.pod.uid {
				continue
			}
			rank := a.Attributes["nixl.local_rank"]
			if a.Attributes["k8s.container.name"] != "inference" || w.service != "team-b-prefill" && filepath.Base(a.Path) != "decode-"+rank {
				t.Errorf("rank %s in %s: %+v", rank, w.namespace, a)
			}
			found[rank] = true
		}
		if len(found) != ranks {
			t.Errorf("nixlring shows %d ranks in %s, want %d\n%s", len(found), w.namespace, ranks, text)
		}
	}
}

// inCollector returns the arguments of kubectl that run nixlring in the Collector's container on the node of a workload.
func (c *chart) inCollector(t *testing.T, w *workload, args ...string) []string {
	t.Helper()
	pod := kubectl(t, "-n", c.namespace, "get", "pod", "-l", "app.kubernetes.io/instance="+c.name,
		"--field-selector", "spec.nodeName="+w.pod.node, "-o", "jsonpath={.items[0].metadata.name}")
	return append([]string{"-n", c.namespace, "exec", pod, "-c", "otelcol-nixl", "--", "nixlring"}, args...)
}

// verdict is what nixlring why says, without what depends on the time.
type verdict struct {
	Agents   int
	Still    string
	Findings []struct {
		Kind   string
		Agents []struct{ ID, Name string }
	}
	Checks []struct {
		Check string
		Well  bool
	}
}

func newVerdict(t *testing.T, name string, args ...string) (v verdict) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdout = &out
	err := cmd.Run() // its exit code says whether there are problems
	if errJSON := json.Unmarshal(out.Bytes(), &v); errJSON != nil {
		t.Fatalf("%s %v: %v, %v", name, args, err, errJSON)
	}
	return v
}

// recordsWhatWhySays fails the test unless a recording of the Collector's container, read here, says what nixlring why says there. The
// container has no shell and no writable directory.
func (c *chart) recordsWhatWhySays(t *testing.T, w *workload) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "agents.jsonl.zst")
	recording := kubectl(t, c.inCollector(t, w, "record", "--duration", "5s", "-")...)
	must.OK(t, os.WriteFile(file, []byte(recording), 0o600))
	here := newVerdict(t, os.Getenv("NIXLRING"), "why", file, "--output", "json")
	there := newVerdict(t, "kubectl", c.inCollector(t, w, "why", "--for", "5s", "--output", "json")...)
	if diff := cmp.Diff(there, here); diff != "" || here.Agents == 0 {
		t.Errorf("%d agents; -in the container +in the recording:\n%s", here.Agents, diff)
	}
}
