// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
)

var (
	testName   = regexp.MustCompile(`^(.+)\.((?:Test|Benchmark|Example)\w*)$`)
	scriptName = regexp.MustCompile(`^cmd/nixlring/testdata/script/\w+\.txtar$`)
)

// Each row of the table says how one can see that it is true.
func TestRowsOfParityNameTestsThatExist(t *testing.T) {
	t.Parallel()
	rows := 0
	for line := range strings.Lines(read(t, "docs/parity.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || cells[2] == " test " || strings.HasPrefix(cells[0], "---") {
			continue
		}
		rows++
		tests := codeSpan.FindAllString(cells[2], -1)
		if len(tests) == 0 {
			t.Errorf("no test in the row %s", cells[0])
		}
		for _, test := range tests {
			if name := strings.Trim(test, "`"); !testExists(t, name) {
				t.Errorf("there is no test %s", name)
			}
		}
	}
	if rows < 40 {
		t.Errorf("only %d rows", rows)
	}
}

// testExists reports whether there is a script with a path, or a test in a directory: DIR.NAME.
func testExists(t *testing.T, name string) bool {
	t.Helper()
	root := ringtest.Root(t)
	if scriptName.MatchString(name) {
		_, err := os.Stat(filepath.Join(root, name))
		return err == nil
	}
	m := testName.FindStringSubmatch(name)
	if m == nil {
		return false
	}
	files, err := filepath.Glob(filepath.Join(root, m[1], "*_test.go"))
	if err != nil {
		return false
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "\nfunc "+m[2]+"(") {
			return true
		}
	}
	return false
}
