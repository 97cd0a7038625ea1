// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"regexp"
	"strings"
)

var (
	// kubeletPod matches the cgroup of a pod: pod<uid> with the kubelet's cgroupfs
	// driver, or the slice kubepods[-<QoS class>]-pod<uid>.slice with its systemd
	// driver. In a slice, the UID contains underscores. Kind adds the prefix kubelet-.
	// The UID of a static pod is a hash.
	kubeletPod = regexp.MustCompile(`^(?:(?:[a-z0-9_-]+-)?kubepods(?:-burstable|-besteffort)?-)?` +
		`pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?$`)
	// runtimeContainer matches the cgroup of a container: its ID, with the prefix and
	// suffix that the container runtime adds.
	runtimeContainer = regexp.MustCompile(`^(?:([a-z-]+)-)?([0-9a-f]{64})(?:\.scope)?$`)
)

// parseCgroup returns the UID of the pod and the ID of the container of a process, or
// "" if there is none. b has the format of /proc/PID/cgroup, with one line for each
// hierarchy; cgroup v2 has only one hierarchy:
//
//	HIERARCHY:CONTROLLERS:PATH
//
// parseCgroup uses the first pod in a path and the first container in that pod, and
// ignores the rest of the path, because a container may be allowed to create cgroups
// with any names below its own. Only the kubelet and the container runtime create the
// cgroups above that. If the path has no pod, parseCgroup uses the first container. In
// a kind cluster, a node is a container without a pod, and its pods are below it:
//
//	/docker/<node>/kubelet/kubepods/burstable/pod<uid>/<container>
//
// Therefore, a container without a pod can claim to be in a pod. On a Kubernetes node,
// all containers are in pods. parseCgroup ignores pods below user.slice, where
// unprivileged users choose the names.
//
// If the hierarchies have different paths, parseCgroup uses the first line with a pod,
// or else the first line with a container. Inside a cgroup namespace, a path may start
// with /.. and lack the part that it has in common with the reader's own path.
func parseCgroup(b []byte) (pod, container string) {
	for line := range strings.Lines(string(b)) {
		p, c := parseCgroupPath(strings.TrimSuffix(line, "\n"))
		switch {
		case p != "":
			return p, c
		case container == "":
			container = c
		}
	}
	return "", container
}

// parseCgroupPath parses a line. Depending on its configuration, containerd creates a
// single cgroup <pod>.slice:cri-containerd:<container>.
func parseCgroupPath(line string) (pod, container string) {
	line = strings.TrimSuffix(line, " (deleted)")
	parts := strings.FieldsFunc(line, func(r rune) bool { return r == '/' || r == ':' })
	users := false
	for _, part := range parts {
		users = users || part == "user.slice"
		p, c := kubeletPod.FindStringSubmatch(part), runtimeContainer.FindStringSubmatch(part)
		switch {
		case p != nil && pod == "" && !users:
			pod, container = strings.ReplaceAll(p[1], "_", "-"), ""
		case c != nil && container == "" && !strings.HasSuffix(c[1], "conmon"): // the monitor of a container runs outside of it
			container = c[2]
		}
	}
	return pod, container
}
