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

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs/procstest"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// openRing creates a ring and leaves its writer open.
func openRing(t *testing.T, path string) *ringbuf.Writer {
	t.Helper()
	w, err := ringbuf.Create(path, ringbuf.V4, 8)
	must.OK(t, err)
	t.Cleanup(func() { _ = w.Close() })
	must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, 4096)))
	if !procs.Attend(path).Known {
		t.Skip("the file system doesn't support leases")
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
	file, _ := recorded(t, 300*time.Millisecond, "-n", "3")
	for _, args := range [][]string{{"simulate", "DIR", "--no-consumer", "-n", "3", "-d", "1s"}, {"replay", file, "DIR"}} {
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
		must.OK(t, agent.Close())
		if r := runFast(t, world{proc: "/proc"}, args...); r.code != exitOK {
			t.Errorf("%v, after the agent exited: %+v", args, r)
		}
	}
}

func TestConsumedRingIsTakenOverIfNoAgentCanBeRunning(t *testing.T) {
	const initial, inner = procstest.Initial, procstest.Inner
	consumer, agent, other := procstest.Process{PID: 30, Lock: true}, procstest.Process{PID: 31}, procstest.Process{PID: 32}
	hidden := procstest.Process{PID: 40, Hidden: true}
	for name, tt := range map[string]struct {
		namespace string
		list      []procstest.Process
		want      string // empty if the ring is taken over
	}{
		"consumer":                    {initial, []procstest.Process{consumer}, ""},
		"consumer, in a container":    {inner, []procstest.Process{consumer}, "process 30 (prog30) consumes it, and an agent may be writing to it: processes outside of this PID namespace can't be inspected"},
		"consumer and hidden process": {initial, []procstest.Process{consumer, hidden}, "process 30 (prog30) consumes it, and an agent may be writing to it: process 40 (prog40) can't be inspected"},
		"consumer and agent":          {initial, []procstest.Process{consumer, agent}, "process 31 (prog31) has it open"},
		"two agents":                  {initial, []procstest.Process{agent, other}, "process 31 (prog31) and process 32 (prog32)"},
		"no visible process":          {inner, nil, "a process of another user or in another container may have it open"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "sim-0")
			openRing(t, path)
			proc := procstest.Make(t, path, tt.namespace, tt.list...)
			r := runFast(t, world{proc: proc}, "simulate", dir, "--no-consumer", "-d", "1s")
			if tt.want == "" && r.code != exitOK || tt.want != "" && (r.code != exitError || !strings.Contains(r.err, tt.want)) {
				t.Errorf("%+v; want %q", r, tt.want)
			}
		})
	}
}

// A pipe can't be read twice, as the check requires.
func TestReplayOfAPipeRequiresForceFlag(t *testing.T) {
	file, _ := recorded(t, 300*time.Millisecond, "-n", "3")
	pipe := filepath.Join(t.TempDir(), "pipe")
	must.OK(t, syscall.Mkfifo(pipe, 0o600))
	recording := readFile(t, file)
	for want, force := range map[string]bool{"can't seek": false, "Replaying": true} {
		done := make(chan error)
		go func() { done <- os.WriteFile(pipe, recording, 0o600) }()
		r := nixlring(t.Context(), nil, "replay", pipe, t.TempDir(), "--speed", "1000", fmt.Sprintf("--force=%v", force))
		must.OK(t, <-done)
		if (r.code == exitOK) != force || !strings.Contains(r.err, want) {
			t.Errorf("force %v: %+v", force, r)
		}
	}
}
