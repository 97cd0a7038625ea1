// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc_test

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

func shell(t *testing.T, script string) *proc.Process {
	t.Helper()
	return proc.Start(t, exec.CommandContext(t.Context(), "sh", "-c", script))
}

func TestWaitForReturnsTheLineAndStopWaitsForTheExit(t *testing.T) {
	t.Parallel()
	p := shell(t, `
		trap 'echo bye >&2; exit 0' TERM
		echo out
		printf 'on its way' >&2; echo ' ready' >&2
		while :; do sleep 0.01; done`)
	if line := p.WaitFor(t, "ready"); line != "on its way ready" {
		t.Errorf("line %q", line)
	}
	p.Stop(t, syscall.SIGTERM)
	if p.Stdout.Text() != "out" || p.Stderr.Count(func(line string) bool { return line == "bye" }) != 1 {
		t.Errorf("stdout is %q and stderr is %q", p.Stdout.Text(), p.Stderr.Text())
	}
}

func TestWaitReturnsTheExitCode(t *testing.T) {
	t.Parallel()
	if code := shell(t, "exit 3").Wait(t); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	p := shell(t, "echo up >&2; while :; do sleep 1; done")
	p.WaitFor(t, "up")
	p.SignalGroup(t, syscall.SIGINT)
	if code := p.Wait(t); code != -1 {
		t.Errorf("exit code %d after a signal, want -1", code)
	}
}

func TestIdleAndStoppedReportTheStateOfAProcess(t *testing.T) {
	t.Parallel()
	busy, idle := shell(t, "while :; do :; done"), shell(t, "echo up >&2; sleep 1000")
	idle.WaitFor(t, "up")
	eventually := func(what string, is func() bool) {
		must.Eventually(t, func() string {
			if is() {
				return ""
			}
			return what
		})
	}
	eventually("the sleeping process isn't idle", func() bool { return proc.Idle(idle.PID()) })
	if proc.Idle(busy.PID()) {
		t.Error("the busy process is idle")
	}
	busy.Signal(t, syscall.SIGSTOP)
	eventually("the process isn't stopped after SIGSTOP", func() bool { return proc.Stopped(busy.PID()) })
	if proc.Stopped(idle.PID()) {
		t.Error("the other process is stopped")
	}
}

func TestProcessesLeftBehindAreKilledAtTheEndOfTheTest(t *testing.T) {
	t.Parallel()
	var session int
	t.Run("leaves a child", func(t *testing.T) {
		p := shell(t, "sleep 1000 <&- >&- 2>&- & echo started >&2")
		p.Wait(t)
		session = p.PID()
		left := proc.Session(session)
		if len(left) != 1 {
			t.Errorf("processes %v are still running, want one", left)
		}
		for _, command := range left {
			if !strings.HasPrefix(command, "sleep ") {
				t.Errorf("process %q is still running, want sleep", command)
			}
		}
	})
	must.Eventually(t, func() string {
		if left := proc.Session(session); len(left) > 0 {
			return "processes are still running"
		}
		return ""
	})
}

func TestFreePortReturnsEachPortOnce(t *testing.T) {
	t.Parallel()
	seen := make(map[int]bool)
	for range 50 {
		port := proc.FreePort(t)
		if seen[port] {
			t.Errorf("FreePort returned port %d twice", port)
		}
		seen[port] = true
	}
}
