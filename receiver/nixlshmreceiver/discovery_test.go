// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/identity"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// The agents of two pods have the same name.
func TestAgentsInPodsAreReportedWithTheirPods(t *testing.T) {
	pods := t.TempDir()
	for pod, size := range map[string]uint64{"uid-1": 100, "uid-2": 7} {
		dir := filepath.Join(pods, pod, "volumes", "kubernetes.io~empty-dir", "shm")
		must.OK(t, os.MkdirAll(dir, 0o750))
		push(t, ring(t, dir, "decode-0", ringbuf.V4, 64), write(size, 9, 3)...)
	}
	h := newHarness(t, t.TempDir(), func(c *Config) {
		c.Directories = nil
		c.Discovery.Kubelet.GetOrInsertDefault().Path = pods
		c.ResourceAttributes.NixlTelemetryPath.Enabled = true
		c.Resource = map[string]string{"service.name": "inference"}
	})
	telemetry := h.withTelemetry()
	h.startWith(2)
	opened := make(map[string]bool)
	for range 2 { // in any order
		line := h.log("ring opened", "/volumes", "k8s.pod.uid=")
		for _, pod := range []string{"uid-1", "uid-2"} {
			if containsAll(line, []string{pod + "/volumes", "k8s.pod.uid=" + pod}) {
				opened[pod] = true
			}
		}
	}
	if len(opened) != 2 {
		t.Errorf("the log names the rings of the pods %v, want uid-1 and uid-2", opened)
	}

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

// The Collectors of two replicas on one node run as sidecars: the host and the path of
// the ring are the same.
func TestSidecarsOfTwoReplicasReportDifferentInstances(t *testing.T) {
	dir := t.TempDir()
	ids := make(map[string]bool)
	for _, pod := range []string{"uid-1", "uid-2"} {
		push(t, ring(t, dir, "decode-0", ringbuf.V4, 64), write(100, 9, 3)...)
		h := newHarness(t, dir, func(c *Config) { c.Resource = map[string]string{"k8s.pod.uid": pod} })
		h.startWith(1)
		a := readAgent(t, h.next().ResourceMetrics().At(0))
		if got := a.resource["k8s.pod.uid"]; got != pod {
			t.Errorf("k8s.pod.uid = %q, want %q", got, pod)
		}
		ids[a.resource["service.instance.id"]] = true
		if err := h.stop(); err != nil {
			t.Error(err)
		}
		must.OK(t, os.Remove(filepath.Join(dir, "decode-0")))
	}
	if len(ids) != 2 {
		t.Errorf("both replicas report the same service.instance.id: %v", ids)
	}
}
