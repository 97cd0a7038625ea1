// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree creates a directory with files and subdirectories.
func tree(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// walked returns the paths that Dir returns, relative to dir. Directories end with a slash.
func walked(t *testing.T, dir, root string, recursive bool) (names []string) {
	t.Helper()
	for e, err := range Dir(root, recursive) {
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(dir, e.Path)
		if err != nil {
			t.Fatal(err)
		}
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	return names
}

func TestDirReturnsFilesInLexicalOrder(t *testing.T) {
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

func TestDirStopsWhenTheLoopBreaks(t *testing.T) {
	dir, seen := tree(t, "a", "b", "c"), 0
	for e, err := range Dir(dir, false) {
		if err != nil {
			t.Fatal(err)
		}
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

func TestDirReturnsAnErrorForAMissingDirectory(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	n := 0
	for e, err := range Dir(missing, true) {
		n++
		if e.Path != missing || e.DirEntry != nil || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%+v: %v", e, err)
		}
	}
	if n != 1 {
		t.Errorf("%d entries", n)
	}
}
