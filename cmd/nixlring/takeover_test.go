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

// living is a ring whose agent has it open.
func living(t *testing.T, path string) *ringbuf.Writer {
	t.Helper()
	w, err := ringbuf.Create(path, ringbuf.V4, 8)
	must(t, err)
	t.Cleanup(func() { _ = w.Close() })
	must(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, 4096)))
	if _, err := ringbuf.Unattended(path); err != nil {
		t.Skipf("this file system can't tell: %v", err)
	}
	return w
}

// quickly runs the program in no time.
func quickly(t *testing.T, w world, args ...string) (r result) {
	t.Helper()
	w.now = time.Now
	synctest.Test(t, func(t *testing.T) { r = runWith(t.Context(), w, args...) })
	return r
}

func TestLivingRingsAreNotTakenOver(t *testing.T) {
	file, _ := recorded(t, "-n", "3")
	for _, args := range [][]string{{"simulate", "DIR", "-n", "3", "-d", "1s"}, {"replay", file, "DIR"}} {
		dir := t.TempDir()
		alive := filepath.Join(dir, "sim-1")
		agent := living(t, alive)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "DIR", dir)
		}
		before := ringtest.ReadHeader(t, alive)
		r := quickly(t, world{proc: "/proc"}, args...)
		for _, want := range []string{"ring " + alive, fmt.Sprintf("process %d (", os.Getpid()), "nothing was touched", "--force"} {
			if r.code != exitError || r.out != "" || !strings.Contains(r.err, want) {
				t.Errorf("%v: no %q in %+v", args, want, r)
			}
		}
		if after := ringtest.ReadHeader(t, alive); after != before {
			t.Errorf("%v: the ring was changed from %+v to %+v", args, before, after)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("%v: rings were made before all had been looked at: %v %v", args, left, err)
		}
		if r := quickly(t, world{proc: "/proc"}, append(args, "--force")...); r.code != exitOK {
			t.Errorf("%v, forced: %+v", args, r)
		}
		must(t, agent.Close())
		if r := quickly(t, world{proc: "/proc"}, args...); r.code != exitOK {
			t.Errorf("%v, after the agent's end: %+v", args, r)
		}
	}
}

// process is one that has a ring mapped for writing.
type process struct {
	pid  int
	lock bool // it is a consumer
}

// procOf makes a /proc of processes that have a file.
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

// A ring that is merely consumed may be taken over if it is certain that no
// agent is left.
func TestConsumedRings(t *testing.T) {
	const initial, inner = "pid:[4026531836]", "pid:[4026532561]"
	for name, tt := range map[string]struct {
		namespace string
		list      []process
		unseen    bool   // a process can't be looked at
		want      string // empty: it is taken over
	}{
		"a consumer only":            {initial, []process{{30, true}}, false, ""},
		"a consumer, in a container": {inner, []process{{30, true}}, false, "process 30 (prog30) consumes it, and an agent may"},
		"a consumer, and a stranger": {initial, []process{{30, true}}, true, "process 30 (prog30) consumes it, and an agent may"},
		"a consumer and an agent":    {initial, []process{{30, true}, {31, false}}, false, "process 31 (prog31) has it open"},
		"two agents":                 {initial, []process{{31, false}, {32, false}}, false, "process 31 (prog31) and process 32 (prog32)"},
		"nobody that can be seen":    {inner, nil, false, "a process that can't be seen from here"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "sim-0")
			living(t, path)
			proc := procOf(t, path, tt.namespace, tt.list...)
			if tt.unseen {
				must(t, os.MkdirAll(filepath.Join(proc, "40", "maps"), 0o755)) // reading it fails
			}
			r := quickly(t, world{proc: proc}, "simulate", dir, "-d", "1s")
			if tt.want == "" && r.code != exitOK || tt.want != "" && (r.code != exitError || !strings.Contains(r.err, tt.want)) {
				t.Errorf("%+v; want %q", r, tt.want)
			}
		})
	}
}

// What can't be read twice can't be looked through first.
func TestReplayOfAPipe(t *testing.T) {
	file, _ := recorded(t, "-n", "3")
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	recording := readFile(t, file)
	for want, force := range map[string]bool{"it can't be read twice": false, "Replaying": true} {
		done := make(chan error)
		go func() { done <- os.WriteFile(pipe, recording, 0o600) }()
		r := nixlring(t.Context(), nil, "replay", pipe, t.TempDir(), "--speed", "1000", fmt.Sprintf("--force=%v", force))
		must(t, <-done)
		if (r.code == exitOK) != force || !strings.Contains(r.err, want) {
			t.Errorf("force %v: %+v", force, r)
		}
	}
}
