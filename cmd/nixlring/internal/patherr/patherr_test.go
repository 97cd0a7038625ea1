// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package patherr

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

func TestExplainSaysWhatIsMissingAndWhatToDo(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing")
	_, lstat := os.Lstat(missing)
	_, open := os.Open(filepath.Join(missing, "deeper"))
	denied := &fs.PathError{Op: "open", Path: dir, Err: syscall.EACCES}
	must.OK(t, os.Chmod(dir, 0o700))
	owner := fmt.Sprintf("belongs to uid %d (drwx------), this process runs as uid %[1]d; run as uid %[1]d or root", os.Geteuid())
	for name, tt := range map[string]struct {
		kind Kind
		path string
		err  error
		want string
	}{
		"a ring":        {Ring, missing, lstat, missing + ": no such file; nixlring ls"},
		"a directory":   {Rings, missing, fmt.Errorf("look: %w", open), missing + ": no such directory; agents don't create it"},
		"under a file":  {Recording, missing, syscall.ENOTDIR, "no such file; specify a recording written by nixlring record"},
		"forbidden":     {Rings, dir, denied, dir + ": no permission: it " + owner},
		"hidden behind": {Ring, missing, denied, missing + ": no permission: " + dir + " " + owner},
	} {
		got := Explain(tt.kind, tt.path, tt.err)
		if !strings.Contains(got.Error(), tt.want) {
			t.Errorf("%s: %v; want %q", name, got, tt.want)
		}
		if !errors.Is(got, errors.Unwrap(got)) || strings.Contains(got.Error(), "stat ") || strings.Contains(got.Error(), "open ") {
			t.Errorf("%s: %v", name, got)
		}
		if again := Explain(tt.kind, tt.path, got); !errors.Is(again, got) || again.Error() != got.Error() {
			t.Errorf("%s, explained twice: %v", name, again)
		}
	}
	for _, err := range []error{nil, fs.ErrExist, &files.PermissionError{Owner: 7}} {
		if got := Explain(Ring, missing, err); !errors.Is(got, err) || err != nil && got.Error() != err.Error() {
			t.Errorf("%v became %v", err, got)
		}
	}
}

func TestDirectoryRejectsFilesAndMissingPaths(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	if err := Directory(Rings, dir); err != nil {
		t.Error(err)
	}
	for kind, want := range map[Kind]string{Rings: "is a file", Watched: "is neither a directory nor a recording"} {
		if err := Directory(kind, file); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
	if err := Directory(Rings, filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
