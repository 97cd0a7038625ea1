// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// Each bug can be applied to the code as it is.
func TestBugsFitTheCode(t *testing.T) {
	rules := make(map[string]bool)
	for _, m := range mutations() {
		if _, err := m.apply("../.."); err != nil {
			t.Error(err)
		}
		if rules[m.rule] {
			t.Errorf("two bugs break the rule %q", m.rule)
		}
		rules[m.rule] = true
	}
	for rule := range foundBy {
		if !rules[rule] {
			t.Errorf("a test is named for the rule %q, which no bug breaks", rule)
		}
	}
	if len(rules) < 60 {
		t.Errorf("there are only %d bugs", len(rules))
	}
}
