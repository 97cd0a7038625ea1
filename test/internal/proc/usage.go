// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// ticksPerSecond is the unit of times in /proc on every Linux architecture that
// Go supports.
const ticksPerSecond = 100

// CPU returns the CPU time that the process has used, with a resolution of 10 ms.
func (p *Process) CPU(tb testing.TB) time.Duration {
	tb.Helper()
	return CPU(tb, p.PID())
}

// CPU returns the CPU time that a process has used.
func CPU(tb testing.TB, pid int) time.Duration {
	tb.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must.OK(tb, err)
	const user, system = 11, 12 // fields after the name: utime, stime
	fields := statFields(string(text))
	if len(fields) <= system {
		tb.Fatalf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	var ticks uint64
	for _, i := range []int{user, system} {
		n, err := strconv.ParseUint(fields[i], 10, 64)
		must.OK(tb, err)
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond
}

// Memory returns the current and the peak resident set size of the process, in
// bytes.
func (p *Process) Memory(tb testing.TB) (now, peak uint64) {
	tb.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	must.OK(tb, err)
	const kB = 1024
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		fields := strings.Fields(rest)
		switch name {
		case "VmRSS":
			now = number(tb, fields) * kB
		case "VmHWM":
			peak = number(tb, fields) * kB
		}
	}
	if now == 0 || peak == 0 {
		tb.Fatalf("/proc/%d/status has no VmRSS or VmHWM", p.PID())
	}
	return now, peak
}

func number(tb testing.TB, fields []string) uint64 {
	tb.Helper()
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.ParseUint(fields[0], 10, 64)
	must.OK(tb, err)
	return n
}
