// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kube

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
	"github.com/nixl-otel/nixl-otel/test/kube/internal/page"
)

// ranks is the number of ranks in each pod.
const ranks = 3

// workload is an inference workload with one pod, inference-0 in any namespace.
type workload struct {
	namespace string
	service   string // OTEL_SERVICE_NAME, if it has one

	pod    pod
	uids   []string // of all its pods so far
	before uint64   // transfers of earlier containers, per rank
	bytes  uint64   // of earlier containers, per rank
	now    uint64   // transfers of this container, per rank
}

// Arguments of the agents: how an engine starts its ranks.
const (
	launched = "-name=decode-%d"                      // with LOCAL_RANK in the environment, as by torchrun
	titled   = "-name=,-title=sglang::scheduler_TP%d" // without a readable environment, and with random names
)

// startWorkload creates a StatefulSet. Its rings are in the pod's own /dev/shm.
func startWorkload(t *testing.T, namespace, service, engine, volumes string) *workload {
	t.Helper()
	w := &workload{namespace: namespace, service: service}
	env := ""
	if service != "" {
		env = fmt.Sprintf("\n            - {name: OTEL_SERVICE_NAME, value: %s}", service)
	}
	mounts := ""
	if volumes != "" {
		mounts = "volumeMounts: [{name: shm, mountPath: /dev/shm}]"
	}
	apply(t, fmt.Sprintf(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: inference, namespace: %s}
spec:
  serviceName: inference
  selector: {matchLabels: {app: inference}}
  template:
    metadata: {labels: {app: inference}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
        - name: inference
          image: %s
          imagePullPolicy: Never
          args: [-listen, -wait=3s, -ranks=%d, %s] # the API server knows the container's ID by then
          env:
            - {name: NIXL_TELEMETRY_ENABLE, value: "y"}
            - {name: NIXL_TELEMETRY_EXPORTER, value: BUFFER}
            - {name: NIXL_TELEMETRY_DIR, value: /dev/shm}%s
          readinessProbe:
            exec: {command: [/agent, send, "0"]}
            periodSeconds: 1
          %s
      volumes: [%s]
`, namespace, agentImage, ranks, engine, env, mounts, volumes))
	w.awaitReady(t)
	return w
}

// awaitReady waits until a new container is ready.
func (w *workload) awaitReady(t *testing.T) {
	t.Helper()
	old := w.pod
	eventually(t, func() string {
		p, err := getPod(t, w.namespace, "inference-0")
		if err != nil {
			return err.Error()
		}
		if !p.ready || p.container == old.container {
			return fmt.Sprintf("inference-0 in %s isn't ready: %+v", w.namespace, p)
		}
		w.pod = p
		return ""
	})
	w.uids = append(w.uids, w.pod.uid)
	w.before, w.bytes = w.transfers(), w.sum()
	w.now = 0
}

// transfers returns how many transfers each rank has written in all containers.
func (w *workload) transfers() uint64 { return w.before + w.now }

// sum returns how many bytes each rank has transferred in all containers.
func (w *workload) sum() uint64 {
	sum := w.bytes
	for n := range w.now {
		sum += 4096 + n
	}
	return sum
}

// write makes each rank write n transfers.
func (w *workload) write(t *testing.T, n uint64) {
	t.Helper()
	kubectl(t, "-n", w.namespace, "exec", "inference-0", "-c", "inference", "--", "/agent", "send", fmt.Sprint(n))
	w.now += n
}

// crash ends the container right after its ranks have written n transfers.
func (w *workload) crash(t *testing.T, n uint64) {
	t.Helper()
	w.write(t, n)
	// The command may be killed with its container.
	_, _ = try(t, "", "kubectl", "-n", w.namespace, "exec", "inference-0", "-c", "inference", "--", "/agent", "send", "die")
	w.awaitReady(t)
}

// replace removes the pod right after its ranks have written n transfers.
func (w *workload) replace(t *testing.T, n uint64, options ...string) {
	t.Helper()
	w.write(t, n)
	kubectl(t, append([]string{"-n", w.namespace, "delete", "pod", "inference-0"}, options...)...)
	w.awaitReady(t)
}

// startSink starts an OTLP endpoint without metrics of earlier tests.
func startSink(t *testing.T) {
	t.Helper()
	apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: sink, namespace: %[1]s, labels: {app: sink}}
spec:
  containers:
    - name: sink
      image: %[2]s
      imagePullPolicy: Never
      command: [/sink]
      readinessProbe: {tcpSocket: {port: 4317}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: sink, namespace: %[1]s}
spec:
  selector: {app: sink}
  ports: [{name: otlp, port: 4317}]
`, system, agentImage))
	kubectl(t, "-n", system, "wait", "--for=condition=Ready", "pod/sink", "--timeout=2m")
	t.Cleanup(func() { _ = kubectlCleanup("-n", system, "delete", "pod", "sink", "--grace-period=0", "--force") })
}

// clusterIP returns the sink's IP address. A test cluster may not have DNS.
func clusterIP(t *testing.T) string {
	t.Helper()
	return kubectl(t, "-n", system, "get", "service", "sink", "-o", "jsonpath={.spec.clusterIP}")
}

// received returns what the sink has received.
func received(t *testing.T) []otlpfile.Resource {
	t.Helper()
	var p page.Page
	text := kubectl(t, "get", "--raw", "/api/v1/namespaces/"+system+"/pods/sink:8080/proxy/")
	must.OK(t, json.Unmarshal([]byte(text), &p))
	if p.Error != "" {
		t.Fatal(p.Error)
	}
	return p.Resources
}

// awaitTotals waits until the sink has the exact totals of each rank of the
// workloads, and fails the test if points contradict each other.
func awaitTotals(t *testing.T, workloads ...*workload) {
	t.Helper()
	eventually(t, func() string {
		resources := received(t)
		for _, w := range workloads {
			for rank := range ranks {
				for metric, want := range map[string]uint64{
					"nixl.transfer.requests": w.transfers(), "nixl.transfer.duration": w.transfers(), "nixl.transfer.io": w.sum(),
				} {
					if got := total(resources, metric, w.namespace, fmt.Sprint("decode-", rank)); got != want {
						return fmt.Sprintf("%s of rank %d in %s: %d, want %d; %d resources in all", metric, rank, w.namespace, got, want, len(resources))
					}
				}
			}
		}
		return ""
	})
}

// total adds up the series of a metric of an agent. The value of a histogram is its count.
func total(resources []otlpfile.Resource, metric, namespace, agent string) (sum uint64) {
	for _, r := range resources {
		if r.Attributes["k8s.namespace.name"] != namespace || agentName(r) != agent {
			continue
		}
		for name, v := range r.Series {
			if name, _, _ = strings.Cut(name, "{"); name == metric {
				sum += uint64(v.Int) + v.Count
			}
		}
	}
	return sum
}

// agentName returns the name of an agent. A random one is replaced with its rank.
func agentName(r otlpfile.Resource) string {
	if name := r.Attributes["nixl.agent.name"]; strings.HasPrefix(name, "decode-") {
		return name
	}
	return "decode-" + r.Attributes["nixl.local_rank"]
}

// checkAttributes fails the test if a resource doesn't have the UID of a pod of the
// workloads or a right value for each of the known attributes.
func checkAttributes(t *testing.T, known []string, workloads ...*workload) {
	t.Helper()
	for _, r := range received(t) {
		namespace := r.Attributes["k8s.namespace.name"]
		i := slices.IndexFunc(workloads, func(w *workload) bool { return w.namespace == namespace })
		if i < 0 {
			t.Errorf("a resource is in the namespace %q: %v", namespace, r.Attributes)
			return
		}
		w := workloads[i]
		service := w.service
		if service == "" {
			service = "nixl"
		}
		if uid := r.Attributes["k8s.pod.uid"]; !slices.Contains(w.uids, uid) {
			t.Errorf("the pod %q isn't one of %v", uid, w.uids)
		}
		want := map[string]string{
			"k8s.pod.name": "inference-0", "k8s.node.name": w.pod.node, "host.name": w.pod.node,
			"k8s.container.name": "inference", "k8s.statefulset.name": "inference",
			"nixl.local_rank": strings.TrimPrefix(agentName(r), "decode-"), "service.name": service,
		}
		for key, value := range want {
			if slices.Contains(known, key) && r.Attributes[key] != value {
				t.Errorf("%s is %q, want %q; all: %v", key, r.Attributes[key], value, r.Attributes)
			}
		}
	}
}

// checkClusters fails the test unless the resources have exactly these names of clusters, in
// alphabetical order.
func checkClusters(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, r := range received(t) {
		got = append(got, r.Attributes["k8s.cluster.name"])
	}
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("the clusters are %q, want %q", got, want)
	}
}
