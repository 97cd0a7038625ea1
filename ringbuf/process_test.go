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
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain lets the test binary be another process: what OpenReader says to
// another user, or to a second consumer.
func TestMain(m *testing.M) {
	if path := os.Getenv("RINGBUF_TEST_OPEN"); path != "" {
		openAsOther(path)
		return
	}
	if dir := os.Getenv("RINGBUF_TEST_FILL"); dir != "" {
		fillFileSystem(dir)
		return
	}
	os.Exit(m.Run())
}

// outcome is what the other process tells of its try to open a ring.
type outcome struct {
	Text                                  string
	Permission, Locked, NotRing, ReadOnly bool
	NoSpace                               bool
	Pushed                                int
	Owner, UID                            uint32
	Events                                int
	OfSparse                              []int
}

// openAsOther opens a ring, says how that went and holds the ring until its
// standard input ends.
func openAsOther(path string) {
	mode, err := ParseMode(os.Getenv("RINGBUF_TEST_MODE"))
	check(err)
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
		var p *PermissionError
		if errors.As(err, &p) {
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

// mountReadOnly makes the directory of path read-only for this process, which
// has a mount namespace of its own.
func mountReadOnly(path string) error {
	dir := path[:strings.LastIndexByte(path, '/')]
	return errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount(dir, dir, "", unix.MS_BIND, ""),
		unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""),
	)
}

// fillFileSystem pushes into a ring on a file system, of this process only,
// that has room for a part of it.
func fillFileSystem(dir string) {
	check(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	check(unix.Mount("none", dir, "tmpfs", 0, "size=100k"))
	unused, err := Create(filepath.Join(dir, "unused"), V4, 4096)
	check(err)
	used, err := Create(filepath.Join(dir, "used"), V4, 4096)
	check(err)
	check(used.Push(NewEvent(TypeTxBytes, 1)))
	atomic.StoreUint64(used.read, 1) // by another reader: no page but the first is there
	w, err := Create(filepath.Join(dir, "agent"), V1, 4096)
	check(err)
	events := samples(V1, 0, 4095)
	n, err := w.PushBatch(events)
	o := outcome{Text: fmt.Sprint(err), NoSpace: errors.Is(err, unix.ENOSPC), Pushed: n}
	r, err := OpenReader(w.Path(), Consume)
	check(err)
	got, err := tryRead(r, 0)
	check(err)
	o.Events = len(got)
	o.OfSparse = append(readTwice(unused), readTwice(used)...)
	check(json.NewEncoder(os.Stdout).Encode(o))
	_, err = io.Copy(io.Discard, os.Stdin)
	check(err)
}

// readTwice pushes, reads and commits two events, and two more.
func readTwice(w *Writer) (events []int) {
	r, err := OpenReader(w.Path(), Consume)
	check(err)
	for range 2 {
		for range 2 {
			check(w.Push(NewEvent(TypeTxBytes, 1)))
		}
		got, err := tryRead(r, 0)
		check(err)
		check(r.Commit())
		events = append(events, len(got))
	}
	return events
}

// other is a process that tries to open a ring.
type other struct {
	outcome

	PID  int
	quit func()
}

// openElsewhere lets another process try, which lives until quit or the end of
// the test. It is skipped where this process may not start it so.
func openElsewhere(t *testing.T, path string, mode Mode, attr *syscall.SysProcAttr, env ...string) other {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), self) // it ends after the test, in its cleanup
	cmd.Env = append(os.Environ(), env...)
	if path != "" {
		cmd.Env = append(cmd.Env, "RINGBUF_TEST_OPEN="+path, "RINGBUF_TEST_MODE="+mode.String())
	}
	cmd.SysProcAttr = attr
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
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
		t.Fatalf("the other process says nothing: %v", err)
	}
	t.Cleanup(o.quit)
	if err := json.Unmarshal(line, &o.outcome); err != nil {
		t.Fatal(err)
	}
	return o
}
