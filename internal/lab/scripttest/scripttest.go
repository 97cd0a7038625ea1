// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package scripttest runs tests that are scripts, so that what happens and what is seen stand side by side.
package scripttest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Run runs a script. Each line has commands, separated by semicolons, and may have => and what is seen then. A mistake
// shows the whole script with its differences.
func Run(tb testing.TB, script string, do func(command []string), see func() string) {
	tb.Helper()
	var want, got strings.Builder
	for line := range strings.Lines(strings.TrimSpace(script)) {
		line = strings.TrimSpace(line)
		commands, _, look := strings.Cut(line, "=>")
		for command := range strings.SplitSeq(commands, ";") {
			if words := strings.Fields(command); len(words) > 0 {
				do(words)
			}
		}
		want.WriteString(line + "\n")
		if got.WriteString(commands); look {
			got.WriteString(strings.TrimSpace("=> " + see()))
		}
		got.WriteString("\n")
	}
	if diff := cmp.Diff(want.String(), got.String()); diff != "" {
		tb.Errorf("script (-want +got):\n%s", diff)
	}
}
