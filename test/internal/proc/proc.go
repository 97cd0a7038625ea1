// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package proc runs programs for tests: it records their output, waits for lines
// in it, stops the programs, and kills the processes that a test leaves behind.
package proc

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// Process is a program that a test runs in its own session.
type Process struct {
	Stdout, Stderr *Log

	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has exited
	err  error         // of Cmd.Wait; valid once done is closed
	left bool          // whether processes of its session remain; valid once done is closed

	killed bool // by the test
}

// Start starts a program. At the end of the test, it kills the program and all
// processes that the program has started. If the test has failed, it logs the
// program's output.
func Start(tb testing.TB, cmd *exec.Cmd) *Process {
	tb.Helper()
	p := &Process{
		Stdout: newLog(), Stderr: newLog(),
		name: filepath.Base(cmd.Path), cmd: cmd, done: make(chan struct{}),
	}
	cmd.Stdout, cmd.Stderr = p.Stdout, p.Stderr
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true // its children can be found by their session
	// A test that panics or times out doesn't run its cleanups.
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	// A child that is still running holds the output open: don't wait for it.
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		tb.Fatalf("start %s: %v", p.name, err)
	}
	go func() {
		p.err = cmd.Wait()
		// Check now: another process may get the same ID later.
		p.left = len(Session(p.PID())) > 0
		p.Stdout.end()
		p.Stderr.end()
		close(p.done)
	}()
	tb.Cleanup(func() { p.cleanup(tb) })
	return p
}

func (p *Process) cleanup(tb testing.TB) {
	select {
	case <-p.done:
		if p.left {
			killSession(p.PID())
		}
	default:
		killSession(p.PID())
		<-p.done
	}
	if tb.Failed() && !p.killed {
		tb.Logf("%s printed:\n%s%s", p.name, tail(p.Stdout), tail(p.Stderr))
	}
}

// tail returns the end of a log. A Collector that fails logs the reason in its
// last lines.
func tail(l *Log) string {
	const most = 40
	lines := l.Lines()
	lines = lines[max(0, len(lines)-most):]
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// PID returns the ID of the process, which is also the ID of its session.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// WaitFor waits until the process writes a line that contains text to standard
// error, and returns the line.
func (p *Process) WaitFor(tb testing.TB, text string) string {
	tb.Helper()
	return p.WaitLine(tb, p.Stderr, text, func(line string) bool { return strings.Contains(line, text) })
}

// WaitLine waits until a line of a log matches, and returns it. The failure
// message describes the line as what.
func (p *Process) WaitLine(tb testing.TB, log *Log, what string, match func(line string) bool) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), must.Patience)
	defer cancel()
	line, err := log.wait(ctx, match)
	if err != nil {
		tb.Fatalf("wait for %s to print %q: %v", p.name, what, err)
	}
	return line
}

// Signal sends a signal to the process alone.
func (p *Process) Signal(tb testing.TB, sig syscall.Signal) {
	tb.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		tb.Fatalf("send %v to %s: %v", sig, p.name, err)
	}
}

// SignalGroup sends a signal to the process group of the process, as a terminal
// does for Ctrl-C.
func (p *Process) SignalGroup(tb testing.TB, sig syscall.Signal) {
	tb.Helper()
	if err := syscall.Kill(-p.PID(), sig); err != nil {
		tb.Fatalf("send %v to the group of %s: %v", sig, p.name, err)
	}
}

// Wait waits until the process exits and returns its exit code, or -1 if a
// signal killed it.
func (p *Process) Wait(tb testing.TB) int {
	tb.Helper()
	return p.WaitWithin(tb, must.Patience)
}

// WaitWithin is like Wait, for a process that runs for longer than [must.Patience].
func (p *Process) WaitWithin(tb testing.TB, d time.Duration) int {
	tb.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		tb.Fatalf("%s didn't exit within %v", p.name, d)
	}
	var exit *exec.ExitError
	if p.err != nil && !errors.As(p.err, &exit) {
		tb.Fatalf("wait for %s: %v", p.name, p.err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// Stop sends a signal and waits until the process exits. It fails the test if
// the exit code isn't 0.
func (p *Process) Stop(tb testing.TB, sig syscall.Signal) {
	tb.Helper()
	p.Signal(tb, sig)
	if code := p.Wait(tb); code != 0 {
		tb.Fatalf("%s exited with code %d after %v, want 0", p.name, code, sig)
	}
}
