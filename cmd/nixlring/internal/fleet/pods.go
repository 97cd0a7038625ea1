// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Attributes that the receiver doesn't know.
const (
	clusterName  = "k8s.cluster.name"
	podName      = "k8s.pod.name"
	podNamespace = "k8s.namespace.name"
	instance     = "instance" // a label of Prometheus
)

// podsInterval is the minimum time between two searches for pods.
const podsInterval = 10 * time.Second

// pods has the names of this node's pods. The receiver knows only their UIDs, but the kubelet has a
// directory NAMESPACE_NAME_UID for the logs of each pod.
type pods struct {
	proc  string // mount point of procfs, whose process 1 is that of the node
	next  time.Time
	known map[string][2]string // namespace and name, by UID
}

// name adds the namespace and the name of an agent's pod, if they can be found.
func (p *pods) name(a *diagnose.Agent, now time.Time) {
	uid := a.Attributes[semconv.K8SPodUID]
	if uid == "" {
		return
	}
	if _, ok := p.known[uid]; !ok && !now.Before(p.next) {
		p.next, p.known = now.Add(podsInterval), make(map[string][2]string)
		list, _ := os.ReadDir(filepath.Join(p.proc, "1", "root", "var", "log", "pods")) // missing, or not for this user
		for _, dir := range list {
			if part := strings.Split(dir.Name(), "_"); len(part) == 3 {
				p.known[part[2]] = [2]string{part[0], part[1]}
			}
		}
	}
	if pod, ok := p.known[uid]; ok {
		a.Attributes[podNamespace], a.Attributes[podName] = pod[0], pod[1]
	}
}
