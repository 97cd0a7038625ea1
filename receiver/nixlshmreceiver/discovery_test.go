// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/identity"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// The agents of two pods have the same name.
func TestAgentsInPodsAreReportedWithTheirPods(t *testing.T) {
	pods := t.TempDir()
	for pod, size := range map[string]uint64{"uid-1": 100, "uid-2": 7} {
		dir := filepath.Join(pods, pod, "volumes", "kubernetes.io~empty-dir", "shm")
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
		push(t, ring(t, dir, "decode-0", ringbuf.V4, 64), write(size, 9, 3)...)
	}
	h := newHarness(t, t.TempDir(), func(c *Config) {
		c.Directories = nil
		c.Discovery.Kubelet = &KubeletConfig{Path: pods, Volumes: []string{"*"}}
		c.ResourceAttributes.NixlTelemetryPath.Enabled = true
		c.ServiceName = "inference"
	})
	telemetry := h.withTelemetry()
	h.startWith(2)

	type agent struct {
		Attributes  map[string]string
		Transmitted int64
	}
	got := make(map[string]agent)
	for _, rm := range h.next().ResourceMetrics().All() {
		a := readAgent(t, rm)
		got[a.resource["k8s.pod.uid"]] = agent{a.resource, a.int(transmitted)}
	}
	want := make(map[string]agent)
	for pod, size := range map[string]int64{"uid-1": 100, "uid-2": 7} {
		want[pod] = agent{map[string]string{
			"service.name": "inference", "service.instance.id": identity.InstanceID(testHost, "pod "+pod+" shm/decode-0"),
			"host.name": testHost, "k8s.pod.uid": pod, "nixl.agent.name": "decode-0", "nixl.telemetry.path": "shm/decode-0",
		}, size}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("agents (-want +got)\n%s", d)
	}
	if d := cmp.Diff(map[string]int64{"kubelet": 2}, sums(t, telemetry, "discovery_directories")); d != "" {
		t.Errorf("directories (-want +got)\n%s", d)
	}
	if n, _ := recorded(t, telemetry, "discovery_duration"); n == 0 {
		t.Error("no search was recorded")
	}
}
