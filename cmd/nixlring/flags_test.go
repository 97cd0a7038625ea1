package main

import (
	"strings"
	"testing"
)

// What is wrong with a flag is said without the functions of Go that found it.
func TestFlagErrors(t *testing.T) {
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"--count -1: it is a whole number, 0 or more", []string{"read", "x", "-c", "-1"}},
		{"--speed fast: it is a number", []string{"replay", "x", "y", "--speed", "fast"}},
		{"--agents many: it is a whole number", []string{"simulate", "x", "-n", "many"}},
		{"--interval soon: it is a duration, like 500ms", []string{"read", "x", "--interval", "soon"}},
		{"--follow perhaps: it is true or false", []string{"read", "x", "--follow=perhaps"}},
		{"--output xml: it is one of text, json", []string{"inspect", "x", "-o", "xml"}},
		{"unknown flag: --json; did you mean --output json?", []string{"read", "x", "--json"}},
		{"unknown flag: --csv; did you mean --output csv?", []string{"ls", "--csv"}},
		{"unknown flag: --csv\n", []string{"inspect", "x", "--csv"}},
		{"unknown flag: --json\n", []string{"record", "x", "--json"}}, // its --output is a file
		{"unknown shorthand flag: 'z' in -z\n", []string{"ls", "-z"}},
		{"flag needs an argument: --output", []string{"ls", "--output"}},
	} {
		r := nixlring(t.Context(), nil, tt.args...)

		if r.code != exitUsage || r.out != "" || !strings.Contains(r.err, tt.want) || strings.Contains(r.err, "strconv") {
			t.Errorf("%v: %+v; want %q", tt.args, r, tt.want)
		}
	}
}
