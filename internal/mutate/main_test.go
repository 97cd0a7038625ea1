// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

// Each bug can be applied to the code as it is.
func TestBugsFitTheCode(t *testing.T) {
	list, err := bugs()
	must.OK(t, err)
	rules := make(map[string]bool)
	for _, b := range list {
		if _, err := b.apply("../.."); err != nil {
			t.Error(err)
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
