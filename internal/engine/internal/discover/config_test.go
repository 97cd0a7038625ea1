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
		"": "matches nothing", "/abs": "matches nothing", "/**": "matches nothing", "/{abs,x}": "matches nothing", "pod/": "matches nothing",
		"../x": "matches nothing", "./x": "matches nothing", "[": "is not a valid pattern",
		"*": "", "**": "", "..x": "", "x.": "", "pod/.*": "", "{pod,/abs}/x": "", "po{d/x,d/.x}": "",
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
