// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"strings"
	"testing"
)

func TestCheckPatternsRejectsPatternsThatMatchNothing(t *testing.T) {
	names := []string{"x", "abs", "pod/x", "pod", ".x", "..x", "pod/.x", "x."}
	for pattern, why := range map[string]string{
		"":         "matches nothing",
		"/abs":     "begins with a slash",
		"/**":      "begins with a slash",
		"/{abs,x}": "begins with a slash",
		"pod/":     "ends with a slash",
		"../x":     "empty path element",
		"./x":      "empty path element",
		"pod//x":   "empty path element",
		"**/../x":  "empty path element",
		"[":        "is not a valid pattern",
		"*":        "", "**": "", "..x": "", "x.": "", "pod/.*": "", "{pod,/abs}/x": "", "po{d/x,d/.x}": "",
	} {
		err := CheckPatterns("exclude", []string{"*", pattern})
		if why == "" && err != nil || why != "" && (err == nil || !strings.Contains(err.Error(), why)) {
			t.Errorf("%q: error is %v, want %q", pattern, err, why)
		}
		matched := false
		for _, name := range names {
			matched = matched || MatchesAny([]string{pattern}, name)
		}
		if matched != (why == "") {
			t.Errorf("%q matches some name: %v", pattern, matched)
		}
	}
}
