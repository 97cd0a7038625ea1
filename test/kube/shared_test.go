// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kube

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

// A pod has two containers on one /dev/shm, and two pods have one directory of the host. Nobody can read the environment
// of the ranks, and their names are random.
func TestContainersOnOneDirectoryKeepTheirAttributes(t *testing.T) {
	needCluster(t)
	createNamespaces(t, system, teamA)
	startSink(t)
	c := install(t, "shared", system, "state.hostPath=/var/lib/nixl-test-shared")
	t.Cleanup(func() { logOnFailure(t, c) })
	hostPath := fmt.Sprintf("{name: shm, hostPath: {path: /dev/shm/nixl-test-%d, type: DirectoryOrCreate}}", time.Now().UnixNano()) // without an earlier run's rings
	containers := []string{"both/prefill", "both/decode", "one/inference", "two/inference"}
	for pod, volume := range map[string]string{"both": shm, "one": hostPath, "two": hostPath} {
		manifest := ""
		for _, name := range containers {
			if of, container, _ := strings.Cut(name, "/"); of == pod {
				manifest += fmt.Sprintf(`
    - name: %s
      image: %s
      imagePullPolicy: Never
      args: [-listen, -wait=3s, -ranks=2, %s]
      env:
        - {name: NIXL_TELEMETRY_ENABLE, value: "y"}
        - {name: NIXL_TELEMETRY_EXPORTER, value: BUFFER}
        - {name: NIXL_TELEMETRY_DIR, value: /dev/shm}
        - {name: OTEL_SERVICE_NAME, value: %s-%s}
      readinessProbe: {exec: {command: [/agent, send, "0"]}, periodSeconds: 1}
      volumeMounts: [{name: shm, mountPath: /dev/shm}]`, container, agentImage, titled, pod, container)
			}
		}
		apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: %s}
spec:
  terminationGracePeriodSeconds: 1
  volumes: [%s]
  containers:%s
`, pod, teamA, volume, manifest))
	}
	kubectl(t, "-n", teamA, "wait", "--for=condition=Ready", "pod", "--all", "--timeout=2m")
	want := make(map[string]uint64) // transfers, by pod, container, service and rank
	for round := range 2 {
		for i, name := range containers {
			pod, container, _ := strings.Cut(name, "/")
			n := uint64(10 + i)
			kubectl(t, "-n", teamA, "exec", pod, "-c", container, "--", "/agent", "send", fmt.Sprint(n))
			for rank := range 2 {
				want[fmt.Sprintf("%s %s %s-%s %d", pod, container, pod, container, rank)] += n
			}
		}
		eventually(t, func() string {
			got := make(map[string]uint64)
			for _, r := range received(t) {
				a := r.Attributes
				name := strings.Join([]string{a["k8s.pod.name"], a["k8s.container.name"], a["service.name"], a["nixl.local_rank"]}, " ")
				got[name] += total([]otlpfile.Resource{r}, "nixl.transfer.requests", teamA, agentName(r))
			}
			return cmp.Diff(want, got)
		})
		if round == 0 {
			kubectl(t, "-n", system, "rollout", "restart", "daemonset/"+c.fullName())
			c.awaitRollout(t)
		}
	}
	c.uninstall(t)
}
