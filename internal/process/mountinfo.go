// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"regexp"
	"strings"
)

// maxMountinfo limits how many bytes of /proc/PID/mountinfo are read. A container has a
// few dozen mounts with about 150 bytes each.
const maxMountinfo = 256 << 10

// terminationLog matches the directory of a mount below the kubelet's directory of a
// container: <root>/pods/<pod UID>/containers/<container name>/<random ID>. The kubelet
// mounts this file as the termination log of each container, /dev/termination-log by
// default.
var terminationLog = regexp.MustCompile(`/pods/([0-9a-f-]{32,36})/containers/([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)/[0-9a-f]{8}$`)

// parseMountinfo returns the name that the spec of a pod gives to the container of a
// process, or "" if there is none. b has the format of /proc/PID/mountinfo, whose fourth
// field is the mounted directory or file.
//
// Unlike the container's ID, the name stays the same when the container restarts. A
// container that may mount can forge the name, but not the pod, which comes from the
// cgroup.
func parseMountinfo(b []byte, pod string) string {
	if pod == "" {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		fields := strings.SplitN(line, " ", 5)
		if len(fields) < 5 {
			continue
		}
		if m := terminationLog.FindStringSubmatch(fields[3]); m != nil && m[1] == pod {
			return m[2]
		}
	}
	return ""
}
