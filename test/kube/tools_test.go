// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kube

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// showsAgents fails the test unless nixlring in the Collector's container shows each rank of the workloads,
// with its pod, container and rank. It observes rings, so totals lack what the Collector took before.
func (c *chart) showsAgents(t *testing.T, workloads ...*workload) {
	t.Helper()
	for _, w := range workloads {
		collector := kubectl(t, "-n", c.namespace, "get", "pod", "-l", "app.kubernetes.io/instance="+c.name,
			"--field-selector", "spec.nodeName="+w.pod.node, "-o", "jsonpath={.items[0].metadata.name}")
		text := kubectl(t, "-n", c.namespace, "exec", collector, "-c", "otelcol-nixl", "--",
			"nixlring", "top", "--window", "1s", "--output", "json")
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
