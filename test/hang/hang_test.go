// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

// Package hang tests that pages, directories and stores that hang don't affect other agents.
package hang

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// mountVariable is set in the child process of a test. It contains the mount point of the file system that
// hangs.
const mountVariable = "NIXL_HANG_MOUNT"

// inChild runs the test again in a child process, because a thread that waits for a page can only be killed.
// The parent serves the file system.
func inChild(t *testing.T, stuck *share, mountPoint string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), mountVariable+"="+mountPoint)
	out := &verdict{share: stuck}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
}

// verdict is the output of a child process. When the child's test has ended, the file system stops hanging,
// because the kernel doesn't end a process before its pages are written back.
type verdict struct {
	bytes.Buffer
	share *share
}

func (v *verdict) Write(b []byte) (int, error) {
	n, err := v.Buffer.Write(b)
	if bytes.Contains(v.Bytes(), []byte("--- ")) {
		v.share.open()
	}
	return n, err
}

// agents is a host with a healthy directory and a directory that hangs.
type agents struct {
	*system
	t       *testing.T
	healthy *ringbuf.Writer
	written int
	memory  []byte
}

func startBeside(t *testing.T, stuck string) *agents {
	t.Helper()
	dir := t.TempDir()
	return &agents{t: t, healthy: agent(t, dir, "healthy", 4096), system: start(t, nil, dir, stuck)}
}

// mustWork writes events and waits until they are reported. The process must still be able to allocate memory
// and to stop all threads for garbage collection.
func (a *agents) mustWork() {
	a.t.Helper()
	push(a.t, a.healthy, 100)
	a.written += 100
	a.await(a.healthy.Path(), uint64(a.written))
	a.memory = make([]byte, 256<<20) // more than the heap has, so the runtime calls mmap
	runtime.GC()
}

// The pages of a FUSE file system may never arrive, so the ring must not be mapped.
func TestRingOnFUSEIsRefused(t *testing.T) {
	if dir := os.Getenv(mountVariable); dir != "" {
		a := startBeside(t, dir)
		a.mustWork()
		a.until(func() bool {
			a.collect()
			return a.reported(notice.RingRefused, dir)
		}, "no notice names the refused ring")
		a.mustWork()
		a.stop("")
		return
	}
	s := newShare(map[string][]byte{"stuck": ringFile(t, 1<<15, 1<<15-1)})
	dir := mount(t, s)
	s.pages.shut()
	inChild(t, s, dir)
}
