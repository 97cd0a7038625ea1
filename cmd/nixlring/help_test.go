// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

var (
	helpFlag   = regexp.MustCompile(`--[a-z][a-z0-9_.-]*[a-z0-9]`)
	lineEnding = regexp.MustCompile(`(?m) $`)
)

// Every flag that a help text or an example names must exist, and examples must be commands that one can copy.
func TestEveryCommandHasHelpWithExamplesAndFlagsThatExist(t *testing.T) {
	t.Parallel()
	root, found := newRoot(world{}), 0
	root.InitDefaultHelpFlag()
	everywhere := make(map[string]bool)
	forEachCommand(root, func(cmd *cobra.Command) {
		for _, name := range helpFlag.FindAllString(cmd.UsageString(), -1) {
			if cmd.Flags().Lookup(name[2:]) != nil || cmd.InheritedFlags().Lookup(name[2:]) != nil {
				everywhere[name] = true
			}
		}
	})
	forEachCommand(root, func(cmd *cobra.Command) {
		found++
		var text bytes.Buffer
		cmd.SetOut(&text)
		must.OK(t, cmd.Help())
		if cmd.Short == "" && cmd.Long == "" || cmd.Example == "" && !groupOnly(cmd) {
			t.Errorf("%s: no description, or no example", cmd.CommandPath())
		}
		if lineEnding.MatchString(text.String()) {
			t.Errorf("%s: the help has spaces at the end of a line", cmd.CommandPath())
		}
		for line := range strings.Lines(text.String()) {
			for _, name := range helpFlag.FindAllString(line, -1) {
				if !everywhere[name] && !strings.Contains(line, "kubectl ") {
					t.Errorf("%s: no command has the flag %s", cmd.CommandPath(), name)
				}
			}
		}
		for line := range strings.Lines(cmd.Example) {
			line = strings.TrimSpace(line)
			args := strings.Fields(line)
			if len(args) == 0 || args[0] != "nixlring" {
				continue // a command of another program, or a comment
			}
			used, _, err := root.Find(args[1:])
			must.OK(t, err)
			if used == root {
				t.Errorf("%s: the example %q runs no command", cmd.CommandPath(), line)
			}
			for _, name := range helpFlag.FindAllString(line, -1) {
				if used.Flags().Lookup(name[2:]) == nil && used.InheritedFlags().Lookup(name[2:]) == nil {
					t.Errorf("%s: in the example %q, %s has no flag %s", cmd.CommandPath(), line, used.CommandPath(), name)
				}
			}
		}
	})
	if found < 10 {
		t.Errorf("%d commands only", found)
	}
}

// forEachCommand calls f with the program and each of its commands, except cobra's own.
func forEachCommand(cmd *cobra.Command, f func(*cobra.Command)) {
	cmd.InitDefaultHelpFlag()
	f(cmd)
	for _, sub := range cmd.Commands() {
		if sub.Name() != "help" && sub.Name() != "completion" {
			forEachCommand(sub, f)
		}
	}
}

// groupOnly reports whether all that a command does is to contain others.
func groupOnly(cmd *cobra.Command) bool { return cmd.HasSubCommands() && cmd.HasParent() }
