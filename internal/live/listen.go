// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Listener is a Unix socket that only its owner and root can connect to.
type Listener struct {
	*net.UnixListener
	path string
	file fs.FileInfo // of the socket
}

// Listen creates a socket at path. It creates the directory if that is missing, and replaces
// a socket that nobody serves anymore. It returns an error if another process serves it, or if
// other users could replace it.
func Listen(path string) (*Listener, error) {
	dir := filepath.Dir(path)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := CheckPrivate(dir); err != nil {
		return nil, err
	}
	if err := checkUnserved(path); err != nil {
		return nil, err
	}
	// The socket gets its mode in a directory of its own, so that nobody can connect before.
	private, err := os.MkdirTemp(dir, ".new-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(private) }()
	created := filepath.Join(private, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: created, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	file, err := moveSocket(created, path)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &Listener{l, path, file}, nil
}

func moveSocket(from, to string) (fs.FileInfo, error) {
	if err := os.Chmod(from, 0o600); err != nil {
		return nil, err
	}
	file, err := os.Lstat(from)
	if err != nil {
		return nil, err
	}
	return file, os.Rename(from, to)
}

// CheckPrivate returns an error if other users could replace files in a directory.
func CheckPrivate(dir string) error {
	const writableByOthers = 0o022
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, _ := Owner(info)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case owner != 0 && int(owner) != os.Geteuid():
		return fmt.Errorf("%s belongs to uid %d, who could replace files in it: use a directory of uid %d", dir, owner, os.Geteuid())
	case info.Mode().Perm()&writableByOthers != 0:
		return fmt.Errorf("%s has mode %#o, so other users could replace files in it: run chmod go-w on it, or use a directory that doesn't exist yet",
			dir, info.Mode().Perm())
	}
	return nil
}

// checkUnserved returns an error if path is in use.
func checkUnserved(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket: remove it, or set another path", path)
	}
	const patience = time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil
	}
	if err == nil {
		_ = conn.Close()
	}
	return fmt.Errorf("another Collector or receiver serves %s: stop it, or set another path", path)
}

// Close stops listening, and removes the socket unless another process has replaced it.
func (l *Listener) Close() error {
	err := l.UnixListener.Close()
	if now, errStat := os.Lstat(l.path); errStat == nil && os.SameFile(now, l.file) {
		err = errors.Join(err, os.Remove(l.path))
	}
	return err
}
