// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// openRing creates a ring and leaves its writer open.
func openRing(t *testing.T, path string) *ringbuf.Writer {
	t.Helper()
	w, err := ringbuf.Create(path, ringbuf.V4, 8)
	must(t, err)
	t.Cleanup(func() { _ = w.Close() })
	must(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, 4096)))
	if _, err := ringbuf.Unattended(path); err != nil {
		t.Skipf("the file system doesn't support leases: %v", err)
	}
	return w
}

// runFast runs the program with a fake clock.
func runFast(t *testing.T, w world, args ...string) (r result) {
	t.Helper()
	w.now = time.Now
	synctest.Test(t, func(t *testing.T) { r = runWith(t.Context(), w, args...) })
	return r
}

func TestRingsOfRunningAgentsAreTakenOverOnlyWithForceFlag(t *testing.T) {
	file, _ := recorded(t, "-n", "3")
	for _, args := range [][]string{{"simulate", "DIR", "-n", "3", "-d", "1s"}, {"replay", file, "DIR"}} {
		dir := t.TempDir()
		path := filepath.Join(dir, "sim-1")
		agent := openRing(t, path)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "DIR", dir)
		}
		before := ringtest.ReadHeader(t, path)
		r := runFast(t, world{proc: "/proc"}, args...)
		for _, want := range []string{"ring " + path, fmt.Sprintf("process %d (", os.Getpid()), "no ring was changed", "--force"} {
			if r.code != exitError || r.out != "" || !strings.Contains(r.err, want) {
				t.Errorf("%v: missing %q in %+v", args, want, r)
			}
		}
		if after := ringtest.ReadHeader(t, path); after != before {
			t.Errorf("%v: the ring was changed from %+v to %+v", args, before, after)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("%v: rings were created before all were checked: %v %v", args, left, err)
		}
		if r := runFast(t, world{proc: "/proc"}, append(args, "--force")...); r.code != exitOK {
			t.Errorf("%v, forced: %+v", args, r)
		}
		must(t, agent.Close())
		if r := runFast(t, world{proc: "/proc"}, args...); r.code != exitOK {
			t.Errorf("%v, after the agent exited: %+v", args, r)
		}
	}
}

// process is a process that has a ring mapped for writing.
type process struct {
	pid  int
	lock bool // the process is a consumer
}

// procOf creates a procfs with processes that have the file at path mapped.
func procOf(t *testing.T, path, namespace string, list ...process) (root string) {
	t.Helper()
	root = t.TempDir()
	var st syscall.Stat_t
	must(t, syscall.Stat(path, &st))
	device := fmt.Sprintf("%02x:%02x", st.Dev>>8&0xfff, st.Dev&0xff)
	must(t, os.MkdirAll(filepath.Join(root, "self", "ns"), 0o755))
	must(t, os.Symlink(namespace, filepath.Join(root, "self", "ns", "pid")))
	locks := ""
	for _, p := range list {
		dir := filepath.Join(root, fmt.Sprint(p.pid))
		must(t, os.Mkdir(dir, 0o755))
		maps := fmt.Sprintf("00400000-00452000 r-xp 00000000 08:02 173521 /usr/bin/dbus-daemon\n"+
			"7f1c00000000-7f1c00011000 rw-s 00000000 %s %d %s\n", device, st.Ino, path)
		must(t, os.WriteFile(filepath.Join(dir, "maps"), []byte(maps), 0o600))
		must(t, os.WriteFile(filepath.Join(dir, "comm"), fmt.Appendf(nil, "prog%d\n", p.pid), 0o600))
		if p.lock {
			locks += fmt.Sprintf("1: FLOCK  ADVISORY  WRITE %d %s:%d 0 EOF\n", p.pid, device, st.Ino)
		}
	}
	must(t, os.WriteFile(filepath.Join(root, "locks"), []byte(locks), 0o600))
	return root
}

func TestConsumedRingIsTakenOverIfNoAgentCanBeRunning(t *testing.T) {
	const initial, inner = "pid:[4026531836]", "pid:[4026532561]"
	for name, tt := range map[string]struct {
		namespace string
		list      []process
		hidden    bool   // a process can't be read
		want      string // empty if the ring is taken over
	}{
		"consumer":                    {initial, []process{{30, true}}, false, ""},
		"consumer, in a container":    {inner, []process{{30, true}}, false, "process 30 (prog30) consumes it, and an agent of another user or in another container may"},
		"consumer and hidden process": {initial, []process{{30, true}}, true, "process 30 (prog30) consumes it, and an agent of another user or in another container may"},
		"consumer and agent":          {initial, []process{{30, true}, {31, false}}, false, "process 31 (prog31) has it open"},
		"two agents":                  {initial, []process{{31, false}, {32, false}}, false, "process 31 (prog31) and process 32 (prog32)"},
		"no visible process":          {inner, nil, false, "a process of another user or in another container has it open"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "sim-0")
			openRing(t, path)
			proc := procOf(t, path, tt.namespace, tt.list...)
			if tt.hidden {
				must(t, os.MkdirAll(filepath.Join(proc, "40", "maps"), 0o755)) // reading it fails
			}
			r := runFast(t, world{proc: proc}, "simulate", dir, "-d", "1s")
			if tt.want == "" && r.code != exitOK || tt.want != "" && (r.code != exitError || !strings.Contains(r.err, tt.want)) {
				t.Errorf("%+v; want %q", r, tt.want)
			}
		})
	}
}

// A pipe can't be read twice, as the check requires.
func TestReplayOfAPipeRequiresForceFlag(t *testing.T) {
	file, _ := recorded(t, "-n", "3")
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	recording := readFile(t, file)
	for want, force := range map[string]bool{"can't seek": false, "Replaying": true} {
		done := make(chan error)
		go func() { done <- os.WriteFile(pipe, recording, 0o600) }()
		r := nixlring(t.Context(), nil, "replay", pipe, t.TempDir(), "--speed", "1000", fmt.Sprintf("--force=%v", force))
		must(t, <-done)
		if (r.code == exitOK) != force || !strings.Contains(r.err, want) {
			t.Errorf("force %v: %+v", force, r)
		}
	}
}
