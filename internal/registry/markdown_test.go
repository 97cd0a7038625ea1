// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
)

// generated matches the text between two markers.
var generated = regexp.MustCompile(`(?is)(generated from package semconv[^\n]*\n).*?(\n[^\n]*end of generated text)`)

// Whatever changes the catalog or this program must be followed by make generate, which replaces generated
// text only.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	root, dir := ringtest.Root(t), t.TempDir()
	args := []string{"semconv/registry", "docs/metrics.md", "bridge/README.md", "receiver/nixlshmreceiver/metadata.yaml"}
	copies := os.DirFS(root)
	for i, path := range args {
		args[i] = filepath.Join(dir, path)
		must.OK(t, os.MkdirAll(filepath.Dir(args[i]), 0o750))
		if i == 0 {
			must.OK(t, os.Mkdir(args[i], 0o750))
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		must.OK(t, err)
		must.OK(t, os.WriteFile(args[i], generated.ReplaceAll(text, []byte("${1}stale$2")), 0o600))
	}
	must.OK(t, run(args))
	written := os.DirFS(dir)
	must.OK(t, fs.WalkDir(written, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		want, err1 := fs.ReadFile(copies, path)
		got, err2 := fs.ReadFile(written, path)
		if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); d != "" {
			t.Errorf("%s is stale: run make generate (-now +generated):\n%s", path, d)
		}
		return errors.Join(err1, err2)
	}))
}

func TestFillRejectsDocumentsThatLackMarkers(t *testing.T) {
	for document, want := range map[string]string{
		"no marker": `section "a" is missing`,
		"<b>/":      `unknown section "b"`,
		"<a>no end": `section "a" has no end`,
		"<a>/<a>/":  `section "a" is repeated`,
	} {
		if _, err := (markers{"<", ">", "/"}).fill(document, map[string]string{"a": "x"}); err == nil || err.Error() != want {
			t.Errorf("%q: error is %v, want %s", document, err, want)
		}
	}
}
