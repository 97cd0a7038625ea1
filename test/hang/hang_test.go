//go:build linux && (amd64 || arm64)

// Package hang tests what may hang for ever: pages, directories and stores. None
// of them may keep other agents from being reported.
package hang

import (
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
func inChild(t *testing.T, mountPoint string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), mountVariable+"="+mountPoint)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// agents is a host with a healthy directory and one that hangs.
type agents struct {
	*system
	t       *testing.T
	healthy *ringbuf.Writer
	written int
}

func startBeside(t *testing.T, stuck string) *agents {
	t.Helper()
	dir := t.TempDir()
	return &agents{t: t, healthy: agent(t, dir, "healthy", 4096), system: start(t, nil, dir, stuck)}
}

// goOn writes events and waits until they are reported. Collecting garbage
// stops all threads for a moment, which must be possible.
func (a *agents) goOn() {
	a.t.Helper()
	push(a.t, a.healthy, 100)
	a.written += 100
	a.await(a.healthy.Path(), uint64(a.written))
	runtime.GC()
}

func TestOtherAgentsGoOnWhileAPageHangs(t *testing.T) {
	if dir := os.Getenv(mountVariable); dir != "" {
		a := startBeside(t, dir)
		a.goOn()
		a.until(func() bool {
			a.collect()
			return a.told(notice.FileSystemHangs, dir)
		}, "no notice names the file system that hangs")
		a.goOn()
		a.stop(dir)
		return
	}
	s := newShare(map[string][]byte{"stuck": ringFile(t, 1<<15, 1<<15-1)})
	dir := mount(t, s)
	s.pages.shut()
	inChild(t, dir)
	s.pages.mustHaveBlocked(t)
}

func TestOtherAgentsGoOnWhileACommitHangs(t *testing.T) {
	if dir := os.Getenv(mountVariable); dir != "" {
		a := startBeside(t, dir)
		a.until(func() bool {
			_, reported := requests(a.collect(), dir+"/stuck")
			return reported
		}, "the ring on FUSE isn't drained")
		a.goOn()
		a.stop("")
		return
	}
	s := newShare(map[string][]byte{"stuck": ringFile(t, 256, 100)})
	dir := mount(t, s)
	s.writes.shut()
	t.Cleanup(s.writes.open) // pages are written back when the child exits
	inChild(t, dir)
}

func TestOtherDirectoriesGoOnWhileOneHangs(t *testing.T) {
	if dir := os.Getenv(mountVariable); dir != "" {
		a := startBeside(t, dir)
		a.goOn()
		a.until(func() bool {
			a.goOn()
			return a.told(notice.FileSystemHangs, dir)
		}, "no notice names the directory that hangs")
		a.stop(dir)
		return
	}
	s := newShare(nil)
	dir := mount(t, s)
	s.names.shut()
	inChild(t, dir)
	s.names.mustHaveBlocked(t)
}
