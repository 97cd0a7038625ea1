// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package place says what is wrong with a path that a command was given, in
// the same words for all commands, and what to do about it.
package place

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/render"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Kind is what is to be at a path.
type Kind uint8

// The kinds.
const (
	Ring      Kind = iota // an agent's ring
	Rings                 // the directory of rings
	Recording             // of nixlring record
	Session               // the CSV of a session, or the directory of sessions
	Folder                // to make a file in
)

// kinds say what isn't there, and what to do then.
var kinds = [...]struct{ noun, todo string }{
	Ring:      {"file", "nixlring ls lists the rings of a directory"},
	Rings:     {"directory", "agents don't make it, so make it first"},
	Recording: {"file", "a recording is what nixlring record writes"},
	Session:   {"file or directory", "name the CSV of a session, or the directory that it is in"},
	Folder:    {"directory", "make it first"},
}

// problem is an error with a text of its own.
type problem struct {
	text string
	error
}

func (p *problem) Error() string { return p.text }

func (p *problem) Unwrap() error { return p.error }

// Explain says that there is nothing at a path, or that this user may not look
// at it, where that is what an error is about. Any other error stays as it is.
func Explain(k Kind, path string, err error) error {
	var known *problem
	var permission *ringbuf.PermissionError
	switch {
	case err == nil, errors.As(err, &known), errors.As(err, &permission): // they say it themselves
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		text := fmt.Sprintf("%s: there is no such %s; %s", render.Printable(path), kinds[k].noun, kinds[k].todo)
		return &problem{text, err}
	case errors.Is(err, fs.ErrPermission):
		return &problem{render.Printable(path) + ": " + forbidden(path), err}
	default:
		return err
	}
}

// forbidden says whose it is that stands in the way: the path itself, or a
// folder above it that can't be looked into.
func forbidden(path string) string {
	what, at := "it", path
	info, err := os.Stat(at)
	for err != nil && at != filepath.Dir(at) {
		at = filepath.Dir(at)
		what = render.Printable(at)
		info, err = os.Stat(at)
	}
	if err != nil {
		return "no permission; run as root"
	}
	owner, _ := Owner(info)
	return fmt.Sprintf("no permission: %s belongs to uid %d (%v), this process runs as uid %d; run as uid %[2]d or root",
		what, owner, info.Mode(), os.Geteuid())
}

// Directory is an error unless there is a directory at a path.
func Directory(k Kind, path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return Explain(k, path, err)
	case !info.IsDir():
		return fmt.Errorf("%s: it is a file; the directory of the rings is needed", render.Printable(path))
	}
	return nil
}
