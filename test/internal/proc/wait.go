// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Eventually waits until a check of what another process does has nothing to
// say any more. Only files, pages and /proc need it: for the rest there are
// events to wait for.
func Eventually(tb testing.TB, check func() string) {
	tb.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	timeout := time.NewTimer(Patience)
	defer timeout.Stop()
	for {
		missing := check()
		if missing == "" {
			return
		}
		select {
		case <-ticker.C:
		case <-timeout.C:
			tb.Fatalf("after %v still: %s", Patience, missing)
		}
	}
}

// Stopped says whether a process, with all its threads, is stopped, as after
// SIGSTOP.
func Stopped(pid int) bool { return allThreads(pid, "T") }

// Idle says whether a process waits for something with all its threads: it has
// finished what it was doing.
func Idle(pid int) bool { return allThreads(pid, "S") }

// allThreads says whether all threads of a process are in a state of proc(5).
func allThreads(pid int, state string) bool {
	stats, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/stat")
	if err != nil || len(stats) == 0 {
		return false
	}
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // a thread that ended meanwhile
		}
		fields := statFields(string(text))
		if len(fields) == 0 || fields[0] != state {
			return false
		}
	}
	return true
}

// statFields are what follows the name in a line of proc(5)'s pid/stat. The
// name can hold anything, spaces and parentheses too.
func statFields(text string) []string {
	return strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
}

// Kill ends the process as kill -9 does, and waits until it is gone. Its output
// isn't shown then: tests that kill do it often.
func (p *Process) Kill(tb testing.TB) {
	tb.Helper()
	p.killed = true
	_ = p.cmd.Process.Signal(syscall.SIGKILL) // it may have ended
	p.Wait(tb)
}
