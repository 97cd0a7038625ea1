// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"strings"
	"testing"
)

func TestStatAcceptsAnyProcessName(t *testing.T) {
	const rest = " S 17 100 100 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 8192 100 18446744073709551615 1 1\n"
	for _, name := range []string{"cat", "a b", ") (", "a) S 1 (b", ")", "((", "tab\tand\nnewline", ""} {
		if parent, start, ok := parseStat([]byte("100 (" + name + ")" + rest)); parent != 17 || start != 123456 || !ok {
			t.Errorf("%q: %d, %d, %v", name, parent, start, ok)
		}
	}
	for _, b := range []string{
		"", "100", "100 (cat)", "100 (cat) S 17", strings.Replace("100 (cat)"+rest, "123456", "-1", 1),
		strings.Replace("100 (cat)"+rest, " 17 ", " x ", 1),
	} {
		if _, _, ok := parseStat([]byte(b)); ok {
			t.Errorf("%q is accepted", b)
		}
	}
}

func TestPrivilegedRequiresBothCapabilities(t *testing.T) {
	for status, want := range map[string]bool{
		"CapPrm:\t0000000000000000\nCapEff:\t000001fffeffffff\n": true,
		"CapEff:\t0000000000080002\n":                            true,
		"CapEff:\t0000000000480002\n":                            true,
		"CapEff:\t0000000000080000\n":                            false,
		"CapEff:\t0000000000000002\nCapBnd:\t000001ffffffffff\n": false,
		"CapEff:\tx\n": false,
		"CapEff:\n":    false,
		"":             false,
	} {
		if got := privileged([]byte(status)); got != want {
			t.Errorf("%q: %v", status, got)
		}
	}
}
