// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

// tree creates a directory with files and subdirectories.
func tree(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range files {
		path := filepath.Join(dir, name)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.OK(t, os.WriteFile(path, nil, 0o600))
	}
	return dir
}

// walked returns the paths that Files returns, relative to dir. Directories end with a slash.
func walked(t *testing.T, dir, root string, recursive bool) (names []string) {
	t.Helper()
	for e, err := range Files(root, recursive) {
		must.OK(t, err)
		name, err := filepath.Rel(dir, e.Path)
		must.OK(t, err)
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	return names
}

func TestFilesReturnsFilesInLexicalOrder(t *testing.T) {
	dir := tree(t, "b", "node/a", "node/deep/c", "a")
	for _, tt := range []struct {
		root      string
		recursive bool
		want      []string
	}{
		{dir, false, []string{"./", "a", "b"}},
		{dir, true, []string{"./", "a", "b", "node/", "node/a", "node/deep/", "node/deep/c"}},
		{filepath.Join(dir, "b"), false, []string{"b"}},
	} {
		if diff := cmp.Diff(tt.want, walked(t, dir, tt.root, tt.recursive)); diff != "" {
			t.Errorf("%s, recursive %v: %s", tt.root, tt.recursive, diff)
		}
	}
}

func TestFilesStopsWhenTheLoopBreaks(t *testing.T) {
	dir, seen := tree(t, "a", "b", "c"), 0
	for e, err := range Files(dir, false) {
		must.OK(t, err)
		if e.IsDir() {
			continue
		}
		if seen++; seen == 2 {
			break
		}
	}
	if seen != 2 {
		t.Errorf("%d files", seen)
	}
}

func TestFilesReturnsAnErrorForAMissingDirectory(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	n := 0
	for e, err := range Files(missing, true) {
		n++
		if e.Path != missing || e.DirEntry != nil || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%+v: %v", e, err)
		}
	}
	if n != 1 {
		t.Errorf("%d entries", n)
	}
}
