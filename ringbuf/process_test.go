// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// TestMain lets the test binary run as another process, such as another user or a
// second consumer.
func TestMain(m *testing.M) {
	if path := os.Getenv("RINGBUF_TEST_OPEN"); path != "" {
		openAsOther(path)
		return
	}
	os.Exit(m.Run())
}

// outcome is the other process's report about opening a ring.
type outcome struct {
	Text                                  string
	Permission, Locked, NotRing, ReadOnly bool
	Owner, UID                            uint32
	Events                                int
}

// openAsOther opens a ring, prints the outcome and keeps the ring open until standard
// input ends.
func openAsOther(path string) {
	var mode Mode
	check(mode.UnmarshalText([]byte(os.Getenv("RINGBUF_TEST_MODE"))))
	if os.Getenv("RINGBUF_TEST_MOUNT") != "" {
		check(mountReadOnly(path))
	}
	if uid, err := strconv.Atoi(os.Getenv("RINGBUF_TEST_UID")); err == nil {
		check(syscall.Setgroups(nil))
		check(syscall.Setgid(uid))
		check(syscall.Setuid(uid))
	}
	var o outcome
	r, err := OpenReader(path, mode)
	if err != nil {
		if p, ok := errors.AsType[*files.PermissionError](err); ok {
			o.Owner, o.UID, o.ReadOnly = p.Owner, p.UID, p.ReadOnly
		}
		o.Text = err.Error()
		o.Permission, o.Locked, o.NotRing = errors.Is(err, fs.ErrPermission), errors.Is(err, ErrLocked), errors.Is(err, ErrNotRing)
	} else {
		events, err := tryRead(r, 0)
		check(err)
		o.Events = len(events)
	}
	check(json.NewEncoder(os.Stdout).Encode(o))
	_, err = io.Copy(io.Discard, os.Stdin)
	check(err)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

// mountReadOnly makes the directory of path read-only for this process, which must
// have its own mount namespace.
func mountReadOnly(path string) error {
	dir := path[:strings.LastIndexByte(path, '/')]
	return errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount(dir, dir, "", unix.MS_BIND, ""),
		unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""),
	)
}

// other is a process that tries to open a ring.
type other struct {
	outcome

	PID  int
	quit func()
}

// openElsewhere opens the ring in another process, which runs until quit or the end of
// the test. It skips the test if this process lacks the permission to start it.
func openElsewhere(t *testing.T, path string, mode Mode, attr *syscall.SysProcAttr, env ...string) other {
	t.Helper()
	self, err := os.Executable()
	must.OK(t, err)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), self) // the cleanup ends it
	cmd.Env = append(os.Environ(), env...)
	if path != "" {
		cmd.Env = append(cmd.Env, "RINGBUF_TEST_OPEN="+path, "RINGBUF_TEST_MODE="+mode.String())
	}
	cmd.SysProcAttr = attr
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must.OK(t, err)
	out, err := cmd.StdoutPipe()
	must.OK(t, err)
	if err := cmd.Start(); err != nil {
		if attr != nil && errors.Is(err, fs.ErrPermission) {
			t.Skipf("needs root: %v", err)
		}
		t.Fatal(err)
	}
	o := other{PID: cmd.Process.Pid}
	o.quit = func() {
		if in.Close() == nil {
			if err := cmd.Wait(); err != nil {
				t.Errorf("the other process: %v", err)
			}
		}
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		if err := cmd.Wait(); attr != nil {
			t.Skipf("the other process could not be set up: %v", err)
		}
		t.Fatalf("the other process printed nothing: %v", err)
	}
	t.Cleanup(o.quit)
	must.OK(t, json.Unmarshal(line, &o.outcome))
	return o
}
