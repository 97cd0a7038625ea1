// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

// Package hang tests what may hang for ever: pages, directories and stores. None
// of them may keep other agents from being reported.
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

// mountVariable is set in the child process of a test: where the file system
// that hangs is mounted.
const mountVariable = "NIXL_HANG_MOUNT"

// inChild runs the test once more, in a process that doesn't serve the file
// system: a thread that waits for a page can only be killed.
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

// verdict is the output of a child process. When the child's test has ended, the
// file system stops hanging: the kernel ends no process before its pages are
// written back.
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

// agents is a host with a healthy directory and one that hangs.
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

// goOn writes events and waits until they are reported. The process must still
// be able to get memory and to stop all threads for a moment.
func (a *agents) goOn() {
	a.t.Helper()
	push(a.t, a.healthy, 100)
	a.written += 100
	a.await(a.healthy.Path(), uint64(a.written))
	a.memory = make([]byte, 256<<20) // more than the heap has, so the kernel is asked
	runtime.GC()
}

// The pages of a FUSE file system may never arrive, so a ring there isn't mapped.
func TestRingOnFUSEIsRefused(t *testing.T) {
	if dir := os.Getenv(mountVariable); dir != "" {
		a := startBeside(t, dir)
		a.goOn()
		a.until(func() bool {
			a.collect()
			return a.told(notice.RingRefused, dir)
		}, "no notice names the ring that is refused")
		a.goOn()
		a.stop("")
		return
	}
	s := newShare(map[string][]byte{"stuck": ringFile(t, 1<<15, 1<<15-1)})
	dir := mount(t, s)
	s.pages.shut()
	inChild(t, s, dir)
}
