// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import "testing"

// mounts are mounts of a container that containerd started for Kubernetes.
const mounts = `1510 1421 0:181 / / rw,relatime - overlay overlay rw,lowerdir=/var/lib/containerd/snapshots/12/fs
1511 1510 0:183 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
1518 1510 254:1 /var/lib/kubelet/pods/` + uid + `/etc-hosts /etc/hosts rw,relatime - ext4 /dev/vda1 rw
1519 1512 254:1 /var/lib/kubelet/pods/` + uid + `/containers/decode-worker/5ab0c3f1 /dev/termination-log rw,relatime - ext4 /dev/vda1 rw
`

func TestContainerNameIsThatOfTheTerminationLog(t *testing.T) {
	for name, tt := range map[string]struct{ mounts, pod, want string }{
		"containerd":             {mounts, uid, "decode-worker"},
		"kubelet's own disk":     {"1 2 8:1 /pods/" + uid + "/containers/a/00000000 /log rw - ext4 /dev/b rw\n", uid, "a"},
		"another pod":            {mounts, "11111111-7b1f-4f57-a2a4-d2ad9b38f2b4", ""},
		"no pod":                 {mounts, "", ""},
		"no mounts":              {"", uid, ""},
		"short line":             {"1 2 8:1\n", uid, ""},
		"upper case":             {"1 2 8:1 /pods/" + uid + "/containers/A/00000000 /log rw - ext4 /dev/b rw\n", uid, ""},
		"more than a name":       {"1 2 8:1 /pods/" + uid + "/containers/a/b/00000000 /log rw - ext4 /dev/b rw\n", uid, ""},
		"volume of the same pod": {"1 2 8:1 /pods/" + uid + "/volumes/kubernetes.io~empty-dir/shm /dev/shm rw - tmpfs tmpfs rw\n", uid, ""},
	} {
		if got := parseMountinfo([]byte(tt.mounts), tt.pod); got != tt.want {
			t.Errorf("%s: name %q, want %q", name, got, tt.want)
		}
	}
}
