// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
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

// cgroup is what the cgroup of a process says about it.
type cgroup struct {
	pod string // UID; "" if there is none
	// outer and container are the IDs of the outermost container in the pod, or on the host, and of
	// the innermost one, such as with Docker in Docker; "" if there is none.
	outer, container string
	// unit is the rest of the path, such as that of a service of systemd or of a step of a Slurm job.
	unit string
}

// parseCgroup parses the format of /proc/PID/cgroup, with one line for each
// hierarchy; cgroup v2 has only one hierarchy:
//
//	HIERARCHY:CONTROLLERS:PATH
//
// parseCgroup uses the first pod in a path, and the containers in that pod, because a container may be
// allowed to create cgroups with any names below its own. Only the kubelet and the container runtime
// create the pod and the outer container. In a kind cluster, a node is a container without a pod, and its pods
// are below it:
//
//	/docker/<node>/kubelet/kubepods/burstable/pod<uid>/<container>
//
// Therefore, a container without a pod can claim to be in a pod. On a Kubernetes node,
// all containers are in pods. parseCgroup ignores pods below user.slice, where
// unprivileged users choose the names.
//
// If the hierarchies have different paths, parseCgroup uses the first line with a pod,
// or else the first line with a container, or else that of systemd. Inside a cgroup namespace, a path may start
// with /.. and lack the part that it has in common with the reader's own path.
func parseCgroup(b []byte) (best cgroup) {
	for line := range strings.Lines(string(b)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) < 3 {
			continue
		}
		c := parseCgroupPath(fields[2])
		switch ofSystemd := fields[1] == "" || fields[1] == "name=systemd"; {
		case c.pod != "":
			return c
		case best.container == "" && (c.container != "" || best.unit == "" && ofSystemd):
			best = c
		}
	}
	return best
}

// parseCgroupPath parses a path. Depending on its configuration, containerd creates a
// single cgroup <pod>.slice:cri-containerd:<container>.
func parseCgroupPath(path string) (g cgroup) {
	parts := strings.FieldsFunc(strings.TrimSuffix(path, " (deleted)"), func(r rune) bool { return r == '/' || r == ':' })
	var rest []string
	users := false
	for _, part := range parts {
		users = users || part == "user.slice"
		p, c := kubeletPod.FindStringSubmatch(part), runtimeContainer.FindStringSubmatch(part)
		switch {
		case p != nil && g.pod == "" && !users:
			g, rest = cgroup{pod: strings.ReplaceAll(p[1], "_", "-")}, nil
		case c != nil && !strings.HasSuffix(c[1], "conmon"): // the monitor of a container runs outside of it
			g.outer, g.container, rest = cmp.Or(g.outer, c[2]), c[2], nil
		case part != "container": // crun creates this below each container
			rest = append(rest, part)
		}
	}
	if n := len(rest); n > 0 && strings.HasSuffix(rest[n-1], ".scope") { // such as that of a login
		rest = rest[:n-1]
	}
	g.unit = strings.Join(rest, "/")
	return g
}
