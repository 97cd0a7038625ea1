// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/nixl-otel/nixl-otel/internal/live"
	"github.com/nixl-otel/nixl-otel/internal/recording"
)

// directory is the directory of the recordings. Files in it with other names aren't touched.
type directory struct {
	path  string
	limit int64 // of all recordings, in bytes
}

// Reasons why a recording can't be written.
var (
	// ErrDirectory means that the directory can't be used.
	ErrDirectory = errors.New("the directory of the recordings can't be used")
	// ErrTooLarge means that a recording would exceed the limit by itself.
	ErrTooLarge = errors.New("the recording is larger than max_bytes: raise it, or use less memory_bytes")
)

const (
	suffix     = ".jsonl.zst"
	unfinished = ".tmp"
	timeFormat = "20060102T150405.000Z"
)

// ours matches the names of recordings, also of those that were not finished. They begin with
// their time, so that their order is that of their names.
var ours = regexp.MustCompile(`^nixl-\d{8}T\d{6}\.\d{3}Z-(slow_transfer|error|full_ring)-[A-Za-z0-9._-]{1,64}\.jsonl\.zst(\.tmp)?$`)

// fileName returns the name of a recording.
func fileName(c *recording.Cause) string {
	const most = 64
	agent := strings.Map(func(r rune) rune {
		if r == '.' || r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, c.Agent)
	return fmt.Sprintf("nixl-%s-%s-%s%s", c.Time.UTC().Format(timeFormat), string(c.Kind), cmp.Or(agent[:min(len(agent), most)], "_"), suffix)
}

// Prepare creates the directory of recordings if it is missing. It returns an error if it can't be
// used.
func Prepare(path string) error { return (&directory{path: path}).prepare() }

// prepare creates the directory if it is missing. It returns an error if other users could replace
// files in it.
func (d *directory) prepare() error {
	err := os.Mkdir(d.path, 0o700)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err == nil {
		err = live.CheckPrivate(d.path)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDirectory, err)
	}
	return nil
}

// file is a recording that is being written.
type file struct {
	*directory
	root *os.Root
	out  *os.File
	temp string
	used int64 // bytes of all recordings, with this one
}

// create creates a file for a recording, under a temporary name.
func (d *directory) create(name string) (*file, error) {
	if err := d.prepare(); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDirectory, err)
	}
	f := &file{directory: d, root: root, temp: name + unfinished}
	list, err := f.list()
	if err == nil {
		f.out, err = root.OpenFile(f.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrDirectory, err), root.Close())
	}
	for _, one := range list {
		f.used += one.Size()
	}
	return f, nil
}

// list returns the other recordings, oldest first.
func (f *file) list() (list []fs.FileInfo, err error) {
	entries, err := fs.ReadDir(f.root.FS(), ".") // sorted by name
	for _, e := range entries {
		if !ours.MatchString(e.Name()) || e.Name() == f.temp || !e.Type().IsRegular() {
			continue
		}
		if info, errInfo := e.Info(); errInfo == nil { // it may have been removed since
			list = append(list, info)
		}
	}
	return list, err
}

// Write implements [io.Writer]. It removes old recordings to stay within the limit.
func (f *file) Write(b []byte) (int, error) {
	if err := f.makeRoom(int64(len(b))); err != nil {
		return 0, err
	}
	n, err := f.out.Write(b)
	f.used += int64(n)
	return n, err
}

func (f *file) makeRoom(n int64) error {
	if f.used+n <= f.limit {
		return nil
	}
	list, err := f.list()
	if err != nil {
		return err
	}
	own, err := f.out.Stat()
	if err != nil {
		return err
	}
	f.used = own.Size()
	for _, one := range list {
		f.used += one.Size()
	}
	for f.used+n > f.limit {
		if len(list) == 0 {
			return ErrTooLarge
		}
		if err := f.root.Remove(list[0].Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		f.used -= list[0].Size()
		list = slices.Delete(list, 0, 1)
	}
	return nil
}

// finish gives the file its name, or removes it after an error. It returns the path of the file.
func (f *file) finish(err error) (path string, _ error) {
	err = errors.Join(err, f.out.Close())
	name := strings.TrimSuffix(f.temp, unfinished)
	if err == nil {
		err = f.root.Rename(f.temp, name)
	}
	if err != nil {
		err = errors.Join(err, f.root.Remove(f.temp))
	}
	return filepath.Join(f.path, name), errors.Join(err, f.root.Close())
}
