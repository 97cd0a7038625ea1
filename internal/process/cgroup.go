// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"regexp"
	"strings"
)

// maxCgroup limits how much is read of a list of cgroups. A path has at most 4,095
// bytes, and cgroup v1 has about a dozen hierarchies.
const maxCgroup = 64 << 10

var (
	// kubeletPod is the cgroup of a pod: pod<uid> of kubelet's cgroupfs driver, or
	// the slice of its systemd driver, kubepods[-<QoS class>]-pod<uid>.slice, where
	// the UID has underscores. Kind puts kubelet- before that. The UID of a static
	// pod is a hash.
	kubeletPod = regexp.MustCompile(`^(?:(?:[a-z0-9_-]+-)?kubepods(?:-burstable|-besteffort)?-)?` +
		`pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?$`)
	// runtimeContainer is the cgroup of a container: its ID, which container
	// runtimes surround with their name.
	runtimeContainer = regexp.MustCompile(`^(?:([a-z-]+)-)?([0-9a-f]{64})(?:\.scope)?$`)
)

// ParseCgroup returns the UID of the pod and the ID of the container that a process
// is in, or "", from the contents of /proc/PID/cgroup, which has a line
//
//	HIERARCHY:CONTROLLERS:PATH
//
// for each hierarchy; cgroup v2 has only one.
//
// A container may be allowed to create cgroups below its own, with any names. So
// the first pod in a path counts, and the first container in it, and whatever
// follows doesn't. Above these, only the kubelet and the container runtime create
// cgroups. Without a pod, the first container counts. A path in a kind cluster leads
// through a node, which is a container without a pod, to the pod of the cluster:
//
//	/docker/<node>/kubelet/kubepods/burstable/pod<uid>/<container>
//
// This believes the node, and so a container that isn't in a pod can claim to be
// in one. On a Kubernetes node, all containers are in pods. Below user.slice, users
// without privileges choose the names, so no pod there is believed.
//
// If a process is in different cgroups of several hierarchies, the first line with
// a pod counts, then the first one with a container. Seen from inside a cgroup
// namespace, a path may start with /.. and lack what it has in common with the
// reader's.
func ParseCgroup(b []byte) (pod, container string) {
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

// parseCgroupPath parses a line. Containerd can be configured so that it creates
// a single cgroup <pod>.slice:cri-containerd:<container>.
func parseCgroupPath(line string) (pod, container string) {
	line = strings.TrimSuffix(line, " (deleted)")
	parts := strings.FieldsFunc(line, func(r rune) bool { return r == '/' || r == ':' })
	users := false
	for _, part := range parts {
		if part == "user.slice" && pod == "" {
			users = true
		}
		if m := kubeletPod.FindStringSubmatch(part); m != nil && pod == "" && !users {
			pod, container = strings.ReplaceAll(m[1], "_", "-"), ""
			continue
		}
		// The monitor of a container, conmon, runs outside of it.
		m := runtimeContainer.FindStringSubmatch(part)
		if m == nil || container != "" || strings.HasSuffix(m[1], "conmon") {
			continue
		}
		container = m[2]
		if pod != "" {
			break
		}
	}
	return pod, container
}
