// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/nixl-otel/nixl-otel/internal/lab/processtest"
	"github.com/nixl-otel/nixl-otel/semconv"
)

var (
	podUIDs      = regexp.MustCompile(`^(|[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$`)
	containerIDs = regexp.MustCompile(`^(|[0-9a-f]{64})$`)
)

// FuzzContainer scans a process whose files a container controls: its environment, mappings,
// cgroup, mounts and names. Whatever they contain, the result is within the limits, and another
// process is found as always.
func FuzzContainer(f *testing.F) {
	const ring = "7f0000000000-7f0000011000 rw-s 00000000 00:1a 5678      /run/nixl/agent\n"
	f.Add(strings.Join(enabled, "\x00"), ring, inAPod, "", "python3")
	f.Add("NIXL_TELEMETRY_ENABLE=y\x00NIXL_TELEMETRY_DIR=../run\x00A=\xff\x00OTEL_RESOURCE_ATTRIBUTES=le=1,a.b=2,a_b=3,k8s.pod.uid=4,service.name=%41", "",
		"/kubepods/pod"+uid+"/../..", "", "x) R 1")
	f.Add("NIXL_TELEMETRY_ENABLE=y\x00NIXL_TELEMETRY_EXPORTER=prometheus_mp\x00NIXL_TELEMETRY_MULTIPROC_DIR=/a/../../b", "1-2 rw-s 0 0:0 0 /libnixl.so\n1-2 rw-s 0 0:0 0 /nixl.1.mmap\n",
		"", "22 1 0:1 /pods/"+uid+"/containers/x /dev/termination-log rw - ext4 /dev/sda rw\n", "")
	fake, root := processtest.New(f), f.TempDir()
	var once sync.Once
	f.Fuzz(func(t *testing.T, environ, mappings, cgroup, mounts, name string) {
		if len(environ)+len(mappings)+len(cgroup)+len(mounts) > 64<<10 || len(name) > 100 || strings.Contains(name, "\x00") {
			return
		}
		h := &host{&processtest.Host{Proc: fake.Proc, TB: t}, t, root, time.Unix(1000, 0)}
		h.setProcess(task{PID: 100, Env: []string{environ}, Mappings: mappings, Cgroup: cgroup, Mounts: mounts, Name: name, Executable: "/" + name})
		once.Do(func() { h.setProcess(task{PID: 101, Env: enabled, Cgroup: inAPod}) })
		list, err := scanUntilDone(New(Config{Proc: h.Proc, Env: []string{"A"}, Attributes: []string{"*"}, Reserved: []string{"region"}}), h.now)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, p := range list {
			if p.PID == 101 {
				found = slices.Equal(p.Dirs, []string{"/run/nixl"}) && p.Pod == uid
				continue
			}
			if !podUIDs.MatchString(p.Pod) || !containerIDs.MatchString(p.Container) {
				t.Errorf("pod %q, container %q", p.Pod, p.Container)
			}
			for _, dir := range p.Dirs {
				if !path.IsAbs(dir) || path.Clean(dir) != dir || len(p.Dirs) > maxDirs {
					t.Errorf("directory %q of %d", dir, len(p.Dirs))
				}
			}
			if !utf8.ValidString(p.Executable) {
				t.Errorf("executable %q", p.Executable)
			}
			checkAttributes(t, p.Attributes)
		}
		if !found {
			t.Errorf("the other process isn't found, or isn't right: %+v", list)
		}
	})
}

// checkAttributes checks the attributes that a process has set against the limits and the rules of
// a Prometheus page.
func checkAttributes(t *testing.T, attributes map[string]string) {
	t.Helper()
	size, labels := 0, make(map[string]bool)
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		value, l := attributes[key], Label(key)
		size += len(key) + len(value)
		if key != semconv.ServiceName && (!Labelable(key) || IsOwn(key) || l == "region") || labels[l] || !isValid(key) || !isValid(value) {
			t.Errorf("attribute %q: %q", key, value)
		}
		labels[l] = true
	}
	if size > MaxAttributeBytes || len(attributes) > MaxAttributes {
		t.Errorf("%d attributes have %d bytes", len(attributes), size)
	}
}
