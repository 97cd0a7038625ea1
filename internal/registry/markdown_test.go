// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
)

// Whatever changes the catalog or this program must be followed by make generate.
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
		must.OK(t, os.WriteFile(args[i], text, 0o600))
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

const before, after = "<!-- generated from package semconv: ", "<!-- end of generated text -->"

func TestFillReplacesGeneratedSectionsOnly(t *testing.T) {
	const document = "intro\n" + before + "a -->\nold\n" + after + "\nbetween\n" + before + "b -->\n" + after + "\nend\n"
	const want = "intro\n" + before + "a -->\nnew a\n" + after + "\nbetween\n" + before + "b -->\nnew b\n" + after + "\nend\n"
	sections := map[string]string{"a": "new a\n", "b": "new b\n"}
	got, err := inMarkdown.fill(document, sections)
	if err != nil || got != want {
		t.Errorf("error is %v, document is\n%s\nwant\n%s", err, got, want)
	}
	if again, err := inMarkdown.fill(got, sections); err != nil || again != want {
		t.Errorf("filling again: error is %v, document is\n%s", err, again)
	}
}

func TestFillRejectsDocumentsThatLackMarkers(t *testing.T) {
	for document, want := range map[string]string{
		"no marker":                               `section "a" is missing`,
		before + "b -->\n" + after:                `unknown section "b"`,
		before + "a -->\nno end":                  `section "a" has no end`,
		strings.Repeat(before+"a -->\n"+after, 2): `section "a" is repeated`,
	} {
		if _, err := inMarkdown.fill(document, map[string]string{"a": "x"}); err == nil || err.Error() != want {
			t.Errorf("%q: error is %v, want %s", document, err, want)
		}
	}
}

func TestBoundsHaveUnits(t *testing.T) {
	for want, got := range map[string]string{
		"100 ns": seconds(100e-9), "2.5 ms": seconds(2.5e-3), "1 s": seconds(1), "10 s": seconds(10),
		"1 KiB": bytes(1 << 10), "16 GiB": bytes(1 << 34), "300 MB/s": perSecond(3e8), "1 TB/s": perSecond(1e12),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
