// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kube

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

const (
	teamA, teamB = "nixl-test-a", "nixl-test-b"
	// shm is an in-memory volume like those of Dynamo's operator and vLLM's manifests.
	shm = "{name: shm, emptyDir: {medium: Memory, sizeLimit: 64Mi}}"
)

// allAttributes are the attributes that the daemon sets for an agent in a container.
var allAttributes = []string{
	"k8s.pod.name", "k8s.node.name", "host.name", "k8s.container.name", "k8s.statefulset.name", "nixl.local_rank", "service.name",
}

func kubectlCleanup(args ...string) error {
	return exec.Command("kubectl", args...).Run() //nolint:noctx // the test's context has ended
}

// TestProcessesModeCountsAllEventsOnce tests the chart's default mode. The rings
// of one workload are in an emptyDir volume, and those of the other are in the
// container's own /dev/shm.
func TestProcessesModeCountsAllEventsOnce(t *testing.T) {
	needCluster(t)
	createNamespaces(t, system, teamA, teamB)
	startSink(t)
	c := install(t, "processes", system, "state.hostPath=/var/lib/nixl-test-processes", "clusterName=test")
	t.Cleanup(func() { logOnFailure(t, c) })
	a, b := startWorkload(t, teamA, "team-a-decode", launched, shm), startWorkload(t, teamB, "team-b-prefill", titled, "")

	a.write(t, 100)
	b.write(t, 70)
	awaitTotals(t, a, b)
	checkAttributes(t, allAttributes, a, b)

	c.showsAgents(t, a, b)
	c.recordsWhatWhySays(t, a)

	t.Log("containers crash, pods are replaced")
	a.crash(t, 30)
	b.crash(t, 20)
	a.write(t, 5)
	b.write(t, 6)
	awaitTotals(t, a, b)
	a.replace(t, 40, "--grace-period=0", "--force")
	b.replace(t, 50)
	a.write(t, 7)
	b.write(t, 8)
	awaitTotals(t, a, b)

	t.Log("rollout of the DaemonSet")
	kubectl(t, "-n", system, "rollout", "restart", "daemonset/"+c.fullName())
	a.write(t, 9)
	b.write(t, 10)
	c.awaitRollout(t)
	a.write(t, 11)
	b.write(t, 12)
	awaitTotals(t, a, b)

	t.Log("upgrade of the chart")
	c.upgrade(t, "collectionInterval=2s", "clusterName=renamed")
	a.write(t, 13)
	b.write(t, 14)
	awaitTotals(t, a, b)
	checkClusters(t, "renamed", "test")

	t.Log("restart of the kubelet")
	restartKubelet(t)
	a.write(t, 15)
	b.write(t, 16)
	awaitTotals(t, a, b)
	checkAttributes(t, allAttributes, a, b)
	c.uninstall(t)
}

// restartKubelet runs the command in KUBE_RESTART_KUBELET.
func restartKubelet(t *testing.T) {
	t.Helper()
	command := os.Getenv("KUBE_RESTART_KUBELET")
	if command == "" {
		t.Log("KUBE_RESTART_KUBELET isn't set: the kubelet isn't restarted")
		return
	}
	run(t, "sh", "-ec", command)
	kubectl(t, "wait", "--for=condition=Ready", "node", "--all", "--timeout=2m")
}

// TestKubeletModeCountsAllEventsOnce tests the mode that needs volumes instead of
// hostPID.
func TestKubeletModeCountsAllEventsOnce(t *testing.T) {
	needCluster(t)
	createNamespaces(t, system, teamA, teamB)
	startSink(t)
	c := install(t, "kubelet", system, "mode=kubelet", "state.hostPath=/var/lib/nixl-test-kubelet", "clusterName=test")
	t.Cleanup(func() { logOnFailure(t, c) })
	a, b := startWorkload(t, teamA, "", launched, shm), startWorkload(t, teamB, "", launched, shm)

	a.write(t, 100)
	b.write(t, 70)
	awaitTotals(t, a, b)
	a.replace(t, 30)
	b.crash(t, 20)
	a.write(t, 5)
	b.write(t, 6)
	awaitTotals(t, a, b)
	c.upgrade(t, "clusterName=renamed")
	a.write(t, 7)
	b.write(t, 8)
	awaitTotals(t, a, b)
	checkClusters(t, "renamed", "test")
	checkAttributes(t, []string{"k8s.pod.name", "k8s.node.name", "host.name", "k8s.statefulset.name"}, a, b)
	c.uninstall(t)
}

// TestSidecarModeCountsAllEventsOnce patches the workload with the patch of the
// release's ConfigMap, as the chart's notes tell users to do.
func TestSidecarModeCountsAllEventsOnce(t *testing.T) {
	needCluster(t)
	createNamespaces(t, system, teamA)
	startSink(t)
	c := install(t, "sidecar", teamA, "mode=sidecar", "securityContext.runAsUser=0", "clusterName=test") // the user of the agents' image
	a := startWorkload(t, teamA, "", launched, "")
	patch := kubectl(t, "-n", teamA, "get", "configmap", c.fullName(), "-o", `jsonpath={.data.patch\.yaml}`)
	file := filepath.Join(t.TempDir(), "patch.yaml")
	must.OK(t, os.WriteFile(file, []byte(patch), 0o600))
	kubectl(t, "-n", teamA, "patch", "statefulset", "inference", "--patch-file", file)
	a.awaitReady(t)
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := exec.Command("kubectl", "-n", teamA, "logs", "inference-0", "-c", "otelcol-nixl").CombinedOutput() //nolint:noctx // the test's context has ended
			t.Log(string(out))
		}
	})

	a.write(t, 100)
	awaitTotals(t, a)
	a.crash(t, 30)
	a.write(t, 5)
	awaitTotals(t, a)
	a.replace(t, 40)
	a.write(t, 7)
	awaitTotals(t, a)
	checkClusters(t, "test")
	checkAttributes(t, []string{"k8s.pod.name", "k8s.node.name", "host.name", "k8s.container.name"}, a)

	c.uninstall(t, "configmap/"+c.fullName())
	t.Log("a patched pod is replaced after the release was uninstalled")
	a.replace(t, 10)
	a.write(t, 3)
	awaitTotals(t, a)
}

func logOnFailure(t *testing.T, c *chart) {
	t.Helper()
	if !t.Failed() {
		return
	}
	args := strings.Fields("-n " + c.namespace + " logs --all-containers --tail=200 daemonset/" + c.fullName())
	out, _ := exec.Command("kubectl", args...).CombinedOutput() //nolint:noctx // the test's context has ended
	t.Log(string(out))
}
