// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
)

// hosted is where the files of the main branch are on the web.
const hosted = "https://github.com/nixl-otel/nixl-otel/blob/main/"

var (
	fence      = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	codeSpan   = regexp.MustCompile("`[^`\n]*`")
	comment    = regexp.MustCompile("(?s)<!--.*?-->")
	inlineLink = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	definition = regexp.MustCompile(`(?m)^\[[^\]]+\]: (\S+)$`)
	heading    = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	linkText   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

func TestLinksLeadToFilesAndHeadings(t *testing.T) {
	t.Parallel()
	for _, file := range documents(t) {
		for _, link := range links(read(t, file)) {
			if problem := check(t, file, link); problem != "" {
				t.Errorf("%s: %s: %s", file, link, problem)
			}
		}
	}
}

// documents returns the paths of the Markdown files of the repository, relative to its root.
func documents(t *testing.T) (files []string) {
	t.Helper()
	root := ringtest.Root(t)
	must.OK(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != root && (strings.HasPrefix(name, ".") || name == "dist" || name == "bin" || name == "shared"):
			return fs.SkipDir
		case !entry.IsDir() && path.Ext(name) == ".md":
			relative, err := filepath.Rel(root, file)
			files = append(files, relative)
			return err
		}
		return nil
	}))
	if len(files) < 10 {
		t.Fatalf("only %d documents", len(files))
	}
	return files
}

// links returns the targets of all links and images of a text.
func links(text string) (targets []string) {
	text = comment.ReplaceAllString(fence.ReplaceAllString(text, ""), "")
	text = codeSpan.ReplaceAllString(text, "code")
	for _, pattern := range []*regexp.Regexp{inlineLink, definition} {
		for _, match := range pattern.FindAllStringSubmatch(text, -1) {
			targets = append(targets, match[1])
		}
	}
	return targets
}

// check reports what is wrong with a link of a document that leads to a file or a heading of the repository,
// or "".
func check(t *testing.T, file, link string) string {
	t.Helper()
	if at, ok := strings.CutPrefix(link, hosted); ok {
		file, link = "top", at
	}
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return ""
	}
	name, anchor, hasAnchor := strings.Cut(link, "#")
	if name != "" {
		file = filepath.Join(filepath.Dir(file), name)
	}
	_, err := os.Stat(filepath.Join(ringtest.Root(t), file))
	switch {
	case err != nil:
		return "there is no such file"
	case hasAnchor && path.Ext(file) != ".md":
		return "only documents have headings"
	case hasAnchor && !slices.Contains(anchors(read(t, file)), anchor):
		return "there is no such heading"
	}
	return ""
}

// anchors returns the anchors that GitHub gives the headings of a text.
func anchors(text string) (list []string) {
	seen := make(map[string]int)
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		anchor := slug(match[1])
		list = append(list, anchor)
		if n := seen[anchor]; n > 0 {
			list[len(list)-1] = fmt.Sprintf("%s-%d", anchor, n)
		}
		seen[anchor]++
	}
	return list
}

// slug returns the anchor of a heading: lower case, with hyphens for spaces and
// without punctuation.
func slug(title string) string {
	title = linkText.ReplaceAllString(title, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		default:
			return -1
		}
	}, strings.TrimSpace(title))
}
