// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:embed bugs.txt
var bugsText string

// bug is an edit that breaks a rule.
type bug struct {
	rule, file string
	old, new   string // old occurs exactly once in the file
	test, seed string // what finds it; empty if any test, or any seed, may
	outside    string // what the simulation lacks to find it; empty if it lacks nothing
}

// bugs parses bugs.txt. The bugs are separated by empty lines.
func bugs() (list []bug, err error) {
	for text := range strings.SplitSeq(bugsText, "\n\n") {
		var b bug
		var old, replacement []string
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			key, value, _ := strings.Cut(line, ": ")
			switch {
			case strings.HasPrefix(line, "#"):
			case strings.HasPrefix(line, "-"):
				old = append(old, line[1:])
			case strings.HasPrefix(line, "+"):
				replacement = append(replacement, line[1:])
			case key == "rule":
				b.rule = value
			case key == "file":
				b.file = value
			case key == "test":
				b.test = value
			case key == "seed":
				b.seed = value
			case key == "outside":
				b.outside = value
			default:
				return nil, fmt.Errorf("bugs.txt: unknown line %q", line)
			}
		}
		if b.old, b.new = strings.Join(old, "\n"), strings.Join(replacement, "\n"); b.rule != "" {
			list = append(list, b)
		}
	}
	return list, nil
}

// apply returns the content of the file with the bug.
func (b *bug) apply(root string) (string, error) {
	content, err := os.ReadFile(filepath.Join(root, b.file))
	if err != nil {
		return "", fmt.Errorf("bug %q: %w", b.rule, err)
	}
	if n := strings.Count(string(content), b.old); n != 1 {
		return "", fmt.Errorf("the text to edit occurs %d times in %s; adjust the bug %q:\n%s", n, b.file, b.rule, b.old)
	}
	return strings.Replace(string(content), b.old, b.new, 1), nil
}
