// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

func TestDocumentSaysHowToBuildBeforeTheFirstReleaseAndHowToInstallAfterIt(t *testing.T) {
	t.Parallel()
	for changelog, want := range map[string]struct{ has, hasNot string }{
		"# Changelog\n\n## Unreleased\n\n- x\n":                                    {"make nixlring", "releases/download"},
		"## Unreleased\n\n## 0.2.0 (2027-01-02)\n\n- x\n\n## 0.1.0 (2026-12-01)\n": {"go get github.com/nixl-otel/nixl-otel@v0.2.0\n", "git clone|make |0\\.1\\.0|no release"},
	} {
		document, err := render(changelog)
		must.OK(t, err)
		if found := regexp.MustCompile(want.hasNot).Find(document); !strings.Contains(string(document), want.has) || found != nil {
			t.Errorf("of %q: the document lacks %q, or contains %q", changelog, want.has, found)
		}
	}
}
