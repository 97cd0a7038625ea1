// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"strings"
	"testing"
)

const (
	uid   = "2d51509a-fcf0-41cc-b535-57cfeeaf73d1"
	slice = "2d51509a_fcf0_41cc_b535_57cfeeaf73d1"
	hash  = "b53dfa9e2dc9b890f7fadb2770857b03" // UID of a static pod
	id    = "0853fad78812e955b92d871d8d597d9bc598e34320c9edbfab0a73eacf150145"
	other = "f52987fbdcc7b29175fb52e01c7917e9d6d2e14550e3a2a7abf739da5a067e31"
	fake  = "/kubepods/pod11111111-1111-1111-1111-111111111111/1111111111111111111111111111111111111111111111111111111111111111"
)

// The paths are from real hosts; only UIDs and IDs are replaced.
var cgroups = []struct {
	name           string
	path           string
	pod, container string
}{
	{"no container", "/", "", ""},
	{"service", "/system.slice/containerd.service", "", ""},
	{"kubepods without a pod", "/kubepods.slice/kubepods-burstable.slice", "", ""},

	{"containerd, systemd driver, burstable", "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + slice + ".slice/cri-containerd-" + id + ".scope", uid, id},
	{"containerd, systemd driver, guaranteed", "/kubepods.slice/kubepods-pod" + slice + ".slice/cri-containerd-" + id + ".scope", uid, id},
	{"containerd, systemd driver, static pod", "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + hash + ".slice/cri-containerd-" + id + ".scope", hash, id},
	{"containerd, cgroupfs driver, guaranteed", "/kubepods/pod" + uid + "/" + id, uid, id},
	{"containerd, cgroupfs driver, configured root", "/hkube/kubepods/besteffort/pod" + uid + "/" + id, uid, id},
	{"containerd, different drivers", "/system.slice/containerd.service/kubepods-besteffort-pod" + slice + ".slice:cri-containerd:" + id, uid, id},
	{"CRI-O, systemd driver", "/kubepods.slice/kubepods-pod" + slice + ".slice/crio-" + id + ".scope", uid, id},
	{"CRI-O, systemd driver, crun", "/kubepods.slice/kubepods-pod" + slice + ".slice/crio-" + id + ".scope/container", uid, id},
	{"CRI-O, cgroupfs driver", "/kubepods/pod" + hash + "/crio-" + id, hash, id},
	{"CRI-O, monitor", "/kubepods.slice/kubepods-pod" + slice + ".slice/crio-conmon-" + id + ".scope", uid, ""},
	{"Docker as a runtime of Kubernetes", "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + slice + ".slice/docker-" + id + ".scope", uid, id},
	{"pod that has no container yet", "/kubepods.slice/kubepods-pod" + slice + ".slice", uid, ""},

	{"Docker, systemd driver", "/system.slice/docker-" + id + ".scope", "", id},
	{"Docker, cgroupfs driver", "/docker/" + id, "", id},
	{"Docker, system services in it", "/docker/" + id + "/system.slice/ssh.service", "", id},
	{"ECS", "/ecs/" + hash + "/" + id, "", id},
	{"podman, crun", "/machine.slice/libpod-" + id + ".scope/container", "", id},
	{"podman, its monitor", "/machine.slice/libpod-conmon-" + id + ".scope", "", ""},
	{"podman, a pod of podman", "/libpod_parent/libpod_pod_" + other + "/libpod-" + id, "", id},
	{"podman, quadlet", "/system.slice/nginx.service/libpod-payload-" + id, "", id},
	{"podman, without root", "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + id + ".scope/container", "", id},

	{"kind, systemd driver", "/docker/" + other + "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod" + slice + ".slice/cri-containerd-" + id + ".scope", uid, id},
	{"kind, in a scope of Docker's", "/system.slice/docker-" + other + ".scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + slice + ".slice/cri-containerd-" + id + ".scope", uid, id},
	{"Docker in Docker", "/docker/" + id + "/docker/" + other, "", other},
	{"Docker in a pod", "/kubepods/burstable/pod" + uid + "/" + id + "/docker/" + other, uid, other},

	{"namespace of another pod", "/../../kubepods-burstable-pod" + slice + ".slice/cri-containerd-" + id + ".scope", uid, id},
	{"namespace of the same pod", "/../cri-containerd-" + id + ".scope", "", id},

	{"exited", "/kubepods/pod" + uid + "/" + id + " (deleted)", uid, id},

	{"a container's own cgroups: a pod", "/kubepods/pod" + uid + "/" + id + fake, uid, strings.Repeat("1", 64)},
	{"a container's own cgroups: a pod, systemd driver", "/kubepods.slice/kubepods-pod" + slice + ".slice/cri-containerd-" + id + ".scope/kubepods-pod" + strings.ReplaceAll(slice, "2", "3") + ".slice/crio-" + other + ".scope", uid, other},
	{"a user's cgroups", "/user.slice/user-1000.slice/user@1000.service" + fake, "", strings.Repeat("1", 64)},

	{"UID with capitals", "/kubepods/pod" + strings.ToUpper(uid) + "/" + id, "", id},
	{"UID too short", "/kubepods/pod" + uid[1:] + "/" + id, "", id},
	{"ID too long", "/docker/" + id + "0", "", ""},
	{"pod in the middle of a name", "/xpod" + uid + "/" + id, "", id},
}

func TestCgroupReturnsPodAndContainer(t *testing.T) {
	for _, tt := range cgroups {
		t.Run(tt.name, func(t *testing.T) {
			for kind, list := range map[string]string{
				"v2": "0::" + tt.path + "\n",
				"v1": "12:memory:" + tt.path + "\n11:cpu,cpuacct:" + tt.path + "\n1:name=systemd:" + tt.path + "\n",
				// Only systemd uses cgroup v2, and some hierarchies have no containers.
				"hybrid": "12:rdma:/\n11:memory:" + tt.path + "\n1:name=systemd:" + tt.path + "\n0::/system.slice/docker.service\n",
			} {
				if g := parseCgroup([]byte(list)); g.pod != tt.pod || g.container != tt.container {
					t.Errorf("%s: pod %q, container %q; want %q and %q", kind, g.pod, g.container, tt.pod, tt.container)
				}
			}
		})
	}
}

func TestCgroupPrefersFirstLineWithPod(t *testing.T) {
	for name, tt := range map[string]struct{ list, pod, container string }{
		"pod in a later line": {"3:cpu:/docker/" + other + "\n2:memory:/kubepods/pod" + uid + "/" + id + "\n", uid, id},
		"two containers":      {"3:cpu:/docker/" + id + "\n2:memory:/docker/" + other + "\n", "", id},
		"nothing":             {"", "", ""},
		"no line":             {"garbage", "", ""},
	} {
		if g := parseCgroup([]byte(tt.list)); g.pod != tt.pod || g.container != tt.container {
			t.Errorf("%s: pod %q, container %q", name, g.pod, g.container)
		}
	}
}

func TestCgroupTellsContainersAndServicesApart(t *testing.T) {
	const inPod = "/kubepods/pod" + uid + "/" + id
	for list, want := range map[string]cgroup{
		"0::" + inPod + "/docker/" + other + "\n":                                                   {uid, id, other, ""},
		"0::" + inPod + "/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n":                 {uid, id, id, "system.slice/slurmstepd.scope/job_7/step_0/user/task_0"},
		"0::/machine.slice/libpod-" + id + ".scope/container\n":                                     {"", id, id, ""},
		"0::/docker/" + id + "/system.slice/a.service\n":                                            {"", id, id, "system.slice/a.service"},
		"0::/system.slice/a.service\n":                                                              {"", "", "", "system.slice/a.service"},
		"0::/user.slice/user-1000.slice/session-17.scope\n":                                         {"", "", "", "user.slice/user-1000.slice"},
		"9:name=systemd:/system.slice/a.service\n8:memory:/b\n0::/\n":                               {"", "", "", "system.slice/a.service"},
		"8:memory:/b\n9:name=systemd:/\n0::/system.slice/a.service\n":                               {"", "", "", "system.slice/a.service"},
		"0::/system.slice/a.service\n8:pids:" + inPod + "\n":                                        {uid, id, id, ""},
		"0::/user.slice/user-1000.slice/libpod-" + other + ".scope/container/x/docker/" + id + "\n": {"", other, id, ""},
	} {
		if got := parseCgroup([]byte(list)); got != want {
			t.Errorf("%q: %+v, want %+v", list, got, want)
		}
	}
}
