// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// Each bug can be applied to the code as it is, and the tests that it names exist.
func TestBugsFitTheCode(t *testing.T) {
	list, err := bugs()
	must.OK(t, err)
	var tests strings.Builder
	for _, dir := range packages {
		files, err := filepath.Glob("../../../" + dir + "/*_test.go")
		must.OK(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			must.OK(t, err)
			tests.Write(text)
		}
	}
	rules := make(map[string]bool)
	for _, b := range list {
		if _, err := b.apply("../../.."); err != nil {
			t.Error(err)
		}
		for name := range strings.SplitSeq(b.test, "|") {
			if b.test != "" && !strings.Contains(tests.String(), "\nfunc "+name+"(") {
				t.Errorf("%s: there is no %s", b.rule, name)
			}
		}
		if rules[b.rule] {
			t.Errorf("two bugs break the rule %q", b.rule)
		}
		rules[b.rule] = true
	}
	if len(rules) < 60 {
		t.Errorf("there are only %d bugs", len(rules))
	}
}
