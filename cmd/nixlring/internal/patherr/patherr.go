// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package patherr explains errors about paths on the command line, in the same words for
// all commands, and says what to do.
package patherr

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// Kind is what a command expects at a path.
type Kind uint8

// The kinds.
const (
	Ring      Kind = iota // an agent's ring
	Rings                 // a directory of rings
	Watched               // a directory of rings, or a recording
	Recording             // a recording of nixlring record
	Session               // the CSV of a session, or a directory of sessions
	Parent                // a directory for a new file
	Pods                  // the kubelet's directory of pods
)

// kinds maps each Kind to its name and to what to do if it is missing.
var kinds = [...]struct{ noun, todo string }{
	Ring:      {"file", "nixlring ls lists the rings of a directory"},
	Rings:     {"directory", "agents don't create it, so create it first"},
	Watched:   {"directory or recording", "agents don't create a directory, so create it first"},
	Recording: {"file", "specify a recording written by nixlring record"},
	Session:   {"file or directory", "specify the CSV of a session, or its directory"},
	Parent:    {"directory", "create it first"},
	Pods:      {"directory", "specify where the kubelet keeps the volumes of pods, or mount it there"},
}

// problem is an error with another text.
type problem struct {
	text string
	error
}

func (p *problem) Error() string { return p.text }

func (p *problem) Unwrap() error { return p.error }

// Explain rewords errors about missing paths and missing permissions. It returns other
// errors unchanged.
func Explain(k Kind, path string, err error) error {
	var known *problem
	var permission *files.PermissionError
	switch {
	case err == nil, errors.As(err, &known), errors.As(err, &permission): // already explained
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		text := fmt.Sprintf("%s: no such %s; %s", units.Printable(path), kinds[k].noun, kinds[k].todo)
		return &problem{text, err}
	case errors.Is(err, fs.ErrPermission):
		return &problem{units.Printable(path) + ": " + forbidden(path), err}
	default:
		return err
	}
}

// forbidden says which path lacks permissions, and its owner: the path itself, or a
// directory above it that can't be read.
func forbidden(path string) string {
	what, at := "it", path
	info, err := os.Stat(at)
	for err != nil && at != filepath.Dir(at) {
		at = filepath.Dir(at)
		what = units.Printable(at)
		info, err = os.Stat(at)
	}
	if err != nil {
		return "no permission; run as root"
	}
	owner, _ := Owner(info)
	return fmt.Sprintf("no permission: %s belongs to uid %d (%v), this process runs as uid %d; run as uid %[2]d or root",
		what, owner, info.Mode(), os.Geteuid())
}

// Directory returns an error unless path is a directory that this process can read.
func Directory(k Kind, path string) error {
	if info, err := os.Stat(path); err == nil && !info.IsDir() { // opening it could block
		what := "is a file"
		if k == Watched {
			what = "is neither a directory nor a recording"
		}
		return fmt.Errorf("%s: %s; specify the directory of the rings", units.Printable(path), what)
	}
	dir, err := os.Open(path)
	if err != nil {
		return Explain(k, path, err)
	}
	return dir.Close()
}
