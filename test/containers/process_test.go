// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containers

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

const (
	onePod     = "2d51509a-fcf0-41cc-b535-57cfeeaf73d1"
	anotherPod = "90b1ecb8-b850-451a-97c6-c073b5ddbb53"
	enable     = "--env=NIXL_TELEMETRY_ENABLE=y"
)

// find looks for the agent.
func (a *agent) find(s *process.Scanner, now time.Time) *process.Process {
	a.t.Helper()
	list, err := s.Scan(now)
	if err != nil {
		a.t.Error(err)
	}
	for _, p := range list {
		if p.PID == a.pid {
			return &p
		}
	}
	return nil
}

// drain takes the events out of the agent's ring, and returns how many there were.
func (a *agent) drain(p *process.Process, dir string) int {
	a.t.Helper()
	f, err := process.OpenFolder(*p, "", dir, ".")
	if err != nil {
		a.t.Fatal(err)
	}
	defer f.Close()
	r, err := ringbuf.OpenReader(filepath.Join(dir, "agent"), ringbuf.Consume, ringbuf.In(f))
	if err != nil {
		a.t.Fatal(err)
	}
	defer r.Close()
	n := 0
	if _, err := r.Read(0, func(b ringbuf.Batch) { n += b.Len() }); err != nil {
		a.t.Fatal(err)
	}
	if err := r.Commit(); err != nil {
		a.t.Fatal(err)
	}
	return n
}

func TestAgentsInContainers(t *testing.T) {
	volume := filepath.Join(t.TempDir(), onePod, "volumes", "kubernetes.io~empty-dir", "rings")
	if err := os.MkdirAll(volume, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(volume, 0o777); err != nil { // whatever the umask
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		spec spec
		dir  string // as the environment has it
		ring string // where the ring is
	}{
		{"root, in its layer", spec{onePod, []string{enable, "--env=NIXL_TELEMETRY_DIR=/rings"}, nil}, "/rings", "/rings"},
		{"a user, on a tmpfs of its own", spec{onePod, []string{enable, "--user=1001", "--tmpfs=/tmp:mode=1777"}, nil}, "/tmp", "/tmp"},
		{"another user, in /dev/shm", spec{anotherPod, []string{enable, "--env=NIXL_TELEMETRY_DIR=/dev/shm/", "--user=1002:1002"}, nil}, "/dev/shm", "/dev/shm"},
		{"a user, in a volume", spec{onePod, []string{enable, "--env=NIXL_TELEMETRY_DIR=/run/nixl", "--user=1003", "--volume=" + volume + ":/run/nixl"}, nil}, "/run/nixl", "/run/nixl"},
		{"through a link", spec{onePod, []string{enable, "--env=NIXL_TELEMETRY_DIR=/var/run/nixl", "--tmpfs=/run/nixl"}, nil}, "/var/run/nixl", "/run/nixl"},
		{"relative to the working directory", spec{onePod, []string{enable, "--env=NIXL_TELEMETRY_DIR=shm", "--workdir=/dev"}, nil}, "/dev/shm", "/dev/shm"},
		{"a directory that is known late", spec{anotherPod, []string{"--user=1004"}, []string{"-dir=/dev/shm"}}, "/dev/shm", "/dev/shm"},
		{"with a read-only layer", spec{onePod, []string{enable, "--env=NIXL_TELEMETRY_DIR=/dev/shm", "--read-only", "--cap-drop=all"}, nil}, "/dev/shm", "/dev/shm"},
		{"in no pod", spec{"", []string{enable, "--env=NIXL_TELEMETRY_DIR=/rings"}, nil}, "/rings", "/rings"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := start(t, tt.spec)
			s, now := process.New(process.Config{}), time.Now()
			p := a.find(s, now)
			if p == nil {
				t.Fatal("the agent isn't found")
			}
			got := *p
			got.Start, got.Env, got.MountNS = 0, nil, ""
			dirs := []string{tt.dir}
			if tt.ring != tt.dir {
				dirs = append(dirs, tt.ring)
			}
			want := process.Process{
				PID: a.pid, NSPID: 1, Executable: "agent",
				Pod: tt.spec.pod, Container: a.id, Dirs: dirs,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			a.interval()
			drained := 0
			for _, dir := range p.Dirs { // the second way leads to the same ring
				drained += a.drain(p, dir)
			}
			if drained != a.written || drained == 0 {
				t.Errorf("%d events, not %d", drained, a.written)
			}
			a.stop()
			if p := a.find(s, now.Add(time.Second)); p != nil {
				t.Errorf("after its end, it is %+v", p)
			}
			if f, err := process.OpenFolder(*p, "", tt.dir, "."); !errors.Is(err, process.ErrExited) {
				t.Errorf("after its end: %v, %v", f, err)
			}
		})
	}
}

// Agents of one name in containers of their own don't meet.
func TestSameNameInManyContainers(t *testing.T) {
	s := process.New(process.Config{})
	namespaces := make(map[string]bool)
	for i := range 3 {
		a := start(t, spec{onePod, []string{enable, "--env=NIXL_TELEMETRY_DIR=/dev/shm"}, nil})
		for range i {
			a.interval()
		}
		p := a.find(s, time.Now())
		if p == nil {
			t.Fatal("the agent isn't found")
		}
		namespaces[p.MountNS] = true
		if n := a.drain(p, "/dev/shm"); n != a.written {
			t.Errorf("%d events, not %d", n, a.written)
		}
	}
	if len(namespaces) != 3 {
		t.Errorf("namespaces are %v", namespaces)
	}
}

// What a container has put in the place of its directory leads nowhere.
func TestContainerWithLinksOutOfItsRoot(t *testing.T) {
	a := start(t, spec{onePod, []string{enable, "--env=NIXL_TELEMETRY_DIR=/rings"}, nil})
	p := a.find(process.New(process.Config{}), time.Now())
	if p == nil {
		t.Fatal("the agent isn't found")
	}
	for dir, want := range map[string]error{
		"/magic":               ringbuf.ErrNotFolder,
		"/proc/1/root/rings":   ringbuf.ErrNotFolder,
		"/proc/1/cwd":          ringbuf.ErrNotFolder,
		"/up":                  os.ErrNotExist,
		"/../../../" + "/work": os.ErrNotExist,
		"/agent":               ringbuf.ErrNotFolder,
		"/dev/null":            ringbuf.ErrNotFolder,
	} {
		if f, err := process.OpenFolder(*p, "", dir, "."); !errors.Is(err, want) {
			t.Errorf("%s: %v, %v; want %v", dir, f, err, want)
		}
	}
}

// Containers that come and go leave nothing behind.
func TestShortLivedContainers(t *testing.T) {
	s := process.New(process.Config{})
	before := descriptors(t)
	for range 5 {
		a := start(t, spec{anotherPod, []string{enable, "--env=NIXL_TELEMETRY_DIR=/dev/shm", "--user=1001"}, nil})
		a.interval()
		p := a.find(s, time.Now())
		if p == nil {
			t.Fatal("the agent isn't found")
		}
		if n := a.drain(p, "/dev/shm"); n != a.written {
			t.Errorf("%d events, not %d", n, a.written)
		}
		a.stop()
	}
	if after := descriptors(t); len(after) > len(before) {
		t.Errorf("these are open: %v\nthese were: %v", after, before)
	}
}

// descriptors returns what this process has open.
func descriptors(t *testing.T) (open []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if link, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			open = append(open, link)
		}
	}
	slices.Sort(open)
	return open
}
