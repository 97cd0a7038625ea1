// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package live

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

// shortDir returns a directory with a path that is short enough for sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "nixl") //nolint:usetesting // t.TempDir may be too long for a socket
	must.OK(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestOnlyTheOwnerCanConnect(t *testing.T) {
	path := filepath.Join(shortDir(t), "run", "receiver.sock")
	l, err := Listen(path)
	must.OK(t, err)
	for path, want := range map[string]fs.FileMode{path: fs.ModeSocket | 0o600, filepath.Dir(path): fs.ModeDir | 0o700} {
		if info, err := os.Lstat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: mode %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("%v, %v: want only the socket", left, err)
	}
	must.OK(t, l.Close())
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket exists after Close")
	}
}

func TestListenRefusesDirectoriesOfOthers(t *testing.T) {
	for want, prepare := range map[string]func(dir string) error{
		"has mode 0777, so other users could replace files in it: run chmod go-w": func(dir string) error { return os.Chmod(dir, 0o777) },
		"is not a directory": func(dir string) error {
			if err := os.Remove(dir); err != nil {
				return err
			}
			return os.Symlink("/tmp", dir)
		},
		"belongs to uid 4711": func(dir string) error {
			if os.Geteuid() != 0 {
				t.Skip("changing the owner requires root")
			}
			return os.Chown(dir, 4711, 4711)
		},
	} {
		dir := filepath.Join(shortDir(t), "d")
		must.OK(t, os.Mkdir(dir, 0o700))
		must.OK(t, prepare(dir))
		if _, err := Listen(filepath.Join(dir, "s")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one with %q", err, want)
		}
	}
}

func TestSocketOfADeadProcessIsReplaced(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must.OK(t, err)
	dead.SetUnlinkOnClose(false)
	must.OK(t, dead.Close())
	l, err := Listen(path)
	must.OK(t, err)
	defer l.Close()
	conn, err := new(net.Dialer).DialContext(t.Context(), "unix", path)
	must.OK(t, err)
	must.OK(t, conn.Close())
}

func TestSocketOfARunningProcessIsRefused(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	first, err := Listen(path)
	must.OK(t, err)
	defer first.Close()
	if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "another Collector or receiver serves "+path) {
		t.Errorf("error is %v", err)
	}
	file := filepath.Join(filepath.Dir(path), "file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	if _, err := Listen(file); err == nil || !strings.Contains(err.Error(), "exists and is not a socket") {
		t.Errorf("error is %v", err)
	}
	if b, err := os.ReadFile(file); err != nil || len(b) != 0 {
		t.Errorf("the file has changed: %v", err)
	}
}

func TestCloseKeepsTheSocketOfASuccessor(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	first, err := Listen(path)
	must.OK(t, err)
	must.OK(t, os.Remove(path))
	second, err := Listen(path)
	must.OK(t, err)
	defer second.Close()
	must.OK(t, first.Close())
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
}
