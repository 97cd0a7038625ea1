// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func TestFlagErrorsDoNotNameGoFunctions(t *testing.T) {
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"--count -1: must be an integer, 0 or more", []string{"read", "x", "-c", "-1"}},
		{"--speed fast: must be a number", []string{"replay", "x", "y", "--speed", "fast"}},
		{"--agents many: must be an integer", []string{"simulate", "x", "-n", "many"}},
		{"--interval soon: must be a duration, such as 500ms", []string{"read", "x", "--interval", "soon"}},
		{"--follow perhaps: must be true or false", []string{"read", "x", "--follow=perhaps"}},
		{"--output xml: must be one of text, json", []string{"inspect", "x", "-o", "xml"}},
		{"unknown flag: --json; did you mean --output json?", []string{"read", "x", "--json"}},
		{"unknown flag: --csv; did you mean --output csv?", []string{"read", "x", "--csv"}},
		{"unknown flag: --csv\n", []string{"inspect", "x", "--csv"}},
		{"unknown flag: --json\n", []string{"record", "x", "--json"}},
		{"unknown shorthand flag: 'z' in -z\n", []string{"ls", "-z"}},
		{"flag needs an argument: --output", []string{"ls", "--output"}},
	} {
		r := nixlring(t.Context(), nil, tt.args...)

		if r.code != exitUsage || r.out != "" || !strings.Contains(r.err, tt.want) || strings.Contains(r.err, "strconv") {
			t.Errorf("%v: %+v; want %q", tt.args, r, tt.want)
		}
	}
}

func TestOutputFlagIsTheFormatInAllCommands(t *testing.T) {
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		for _, flag := range []*pflag.Flag{cmd.Flags().Lookup("output"), cmd.Flags().ShorthandLookup("o")} {
			if flag == nil {
				continue
			}
			if _, ok := flag.Value.(*output); !ok || flag.Name != "output" || flag.Shorthand != "o" {
				t.Errorf("%s: -%s, --%s isn't the output format", cmd.CommandPath(), flag.Shorthand, flag.Name)
			}
		}
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check(newRoot(world{out: io.Discard, err: io.Discard}))
}
