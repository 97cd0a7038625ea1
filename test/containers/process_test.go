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

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

const (
	onePod     = "2d51509a-fcf0-41cc-b535-57cfeeaf73d1"
	anotherPod = "90b1ecb8-b850-451a-97c6-c073b5ddbb53"
	enable     = "--env=NIXL_TELEMETRY_ENABLE=y"
)

// find returns the agent's process, or nil if the scanner doesn't find it.
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

// drain drains the agent's ring and returns the number of events.
func (a *agent) drain(p *process.Process, dir string) int {
	a.t.Helper()
	f, err := process.OpenDir(*p, "", dir, ".")
	must.OK(a.t, err)
	defer f.Close()
	r, err := ringbuf.OpenReaderWith(filepath.Join(dir, "agent"), ringbuf.Consume, func(flag int) (*os.File, error) { return f.OpenFile("agent", flag) })
	must.OK(a.t, err)
	defer r.Close()
	n := 0
	if _, err := r.Read(0, func(b ringbuf.Batch) { n += b.Len() }); err != nil {
		a.t.Fatal(err)
	}
	must.OK(a.t, r.Commit())
	return n
}

func TestScannerFindsTheRingsOfAgentsInContainers(t *testing.T) {
	volume := filepath.Join(t.TempDir(), onePod, "volumes", "kubernetes.io~empty-dir", "rings")
	must.OK(t, os.MkdirAll(volume, 0o777))
	if err := os.Chmod(volume, 0o777); err != nil { // ignore the umask
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		spec spec
		dir  string // from the environment
		ring string // real directory of the ring
	}{
		{"root in the container layer", spec{onePod, []string{enable, "--env=NIXL_TELEMETRY_DIR=/rings"}, nil}, "/rings", "/rings"},
		{"user with a tmpfs", spec{onePod, []string{enable, "--user=1001", "--tmpfs=/tmp:mode=1777"}, nil}, "/tmp", "/tmp"},
		{"other user in dev shm", spec{anotherPod, []string{enable, "--env=NIXL_TELEMETRY_DIR=/dev/shm/", "--user=1002:1002"}, nil}, "/dev/shm", "/dev/shm"},
		{"user in a volume", spec{onePod, []string{enable, "--env=NIXL_TELEMETRY_DIR=/run/nixl", "--user=1003", "--volume=" + volume + ":/run/nixl"}, nil}, "/run/nixl", "/run/nixl"},
		{"through a symlink", spec{onePod, []string{enable, "--env=NIXL_TELEMETRY_DIR=/var/run/nixl", "--tmpfs=/run/nixl"}, nil}, "/var/run/nixl", "/run/nixl"},
		{"relative to the working directory", spec{onePod, []string{enable, "--env=NIXL_TELEMETRY_DIR=shm", "--workdir=/dev"}, nil}, "/dev/shm", "/dev/shm"},
		{"directory set after the start", spec{anotherPod, []string{"--user=1004"}, []string{"-dir=/dev/shm"}}, "/dev/shm", "/dev/shm"},
		{"read-only layer", spec{onePod, []string{enable, "--env=NIXL_TELEMETRY_DIR=/dev/shm", "--read-only", "--cap-drop=all"}, nil}, "/dev/shm", "/dev/shm"},
		{"in no pod", spec{"", []string{enable, "--env=NIXL_TELEMETRY_DIR=/rings"}, nil}, "/rings", "/rings"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := start(t, tt.spec)
			s, now := process.New(process.Config{}), time.Now()
			p := a.find(s, now)
			if p == nil {
				t.Fatal("the scanner doesn't find the agent")
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
			for _, dir := range p.Dirs { // a second directory has the same ring, which is then empty
				drained += a.drain(p, dir)
			}
			if drained != a.written || drained == 0 {
				t.Errorf("%d events, want %d", drained, a.written)
			}
			a.stop()
			if p := a.find(s, now.Add(time.Second)); p != nil {
				t.Errorf("after its exit, the scanner finds %+v", p)
			}
			if f, err := process.OpenDir(*p, "", tt.dir, "."); !errors.Is(err, process.ErrExited) {
				t.Errorf("after its exit: directory %v, error %v", f, err)
			}
		})
	}
}

func TestAgentsWithTheSameNameInSeveralContainersHaveSeparateRings(t *testing.T) {
	s := process.New(process.Config{})
	namespaces := make(map[string]bool)
	for i := range 3 {
		a := start(t, spec{onePod, []string{enable, "--env=NIXL_TELEMETRY_DIR=/dev/shm"}, nil})
		for range i {
			a.interval()
		}
		p := a.find(s, time.Now())
		if p == nil {
			t.Fatal("the scanner doesn't find the agent")
		}
		namespaces[p.MountNS] = true
		if n := a.drain(p, "/dev/shm"); n != a.written {
			t.Errorf("%d events, want %d", n, a.written)
		}
	}
	if len(namespaces) != 3 {
		t.Errorf("mount namespaces are %v, want 3", namespaces)
	}
}

func TestOpenDirRefusesSymlinksOutOfTheContainer(t *testing.T) {
	a := start(t, spec{onePod, []string{enable, "--env=NIXL_TELEMETRY_DIR=/rings"}, nil})
	p := a.find(process.New(process.Config{}), time.Now())
	if p == nil {
		t.Fatal("the scanner doesn't find the agent")
	}
	for dir, want := range map[string]error{
		"/magic":               files.ErrNotDir,
		"/proc/1/root/rings":   files.ErrNotDir,
		"/proc/1/cwd":          files.ErrNotDir,
		"/up":                  os.ErrNotExist,
		"/../../../" + "/work": os.ErrNotExist,
		"/agent":               files.ErrNotDir,
		"/dev/null":            files.ErrNotDir,
	} {
		if f, err := process.OpenDir(*p, "", dir, "."); !errors.Is(err, want) {
			t.Errorf("%s: %v, %v; want %v", dir, f, err, want)
		}
	}
}

func TestScannerLeavesNoFilesOpenAfterContainersStop(t *testing.T) {
	s := process.New(process.Config{})
	before := descriptors(t)
	for range 5 {
		a := start(t, spec{anotherPod, []string{enable, "--env=NIXL_TELEMETRY_DIR=/dev/shm", "--user=1001"}, nil})
		a.interval()
		p := a.find(s, time.Now())
		if p == nil {
			t.Fatal("the scanner doesn't find the agent")
		}
		if n := a.drain(p, "/dev/shm"); n != a.written {
			t.Errorf("%d events, want %d", n, a.written)
		}
		a.stop()
	}
	if after := descriptors(t); len(after) > len(before) {
		t.Errorf("open files are %v\nbefore: %v", after, before)
	}
}

// descriptors returns the open files of this process.
func descriptors(t *testing.T) (open []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must.OK(t, err)
	for _, e := range entries {
		if link, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			open = append(open, link)
		}
	}
	slices.Sort(open)
	return open
}
