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
)

// Stopped reports whether all threads of a process are stopped, as after SIGSTOP.
func Stopped(pid int) bool { return allThreads(pid, "T") }

// Idle reports whether all threads of a process are sleeping: the process has
// no work left.
func Idle(pid int) bool { return allThreads(pid, "S") }

// allThreads reports whether all threads of a process are in a state of proc(5).
func allThreads(pid int, state string) bool {
	stats, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/stat")
	if err != nil || len(stats) == 0 {
		return false
	}
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // the thread has exited
		}
		fields := statFields(string(text))
		if len(fields) == 0 || fields[0] != state {
			return false
		}
	}
	return true
}

// statFields returns the fields after the name in /proc/PID/stat. The name can
// contain spaces and parentheses.
func statFields(text string) []string {
	return strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
}

// Kill sends SIGKILL and waits until the process has exited. The output isn't
// logged for a killed process, because tests that kill do it often.
func (p *Process) Kill(tb testing.TB) {
	tb.Helper()
	p.killed = true
	_ = p.cmd.Process.Signal(syscall.SIGKILL) // the process may have exited
	p.Wait(tb)
}
