// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// write prints the findings as text.
func (v *verdict) write(w world) error {
	say := w.err
	agents := plural(v.Agents, "agent", "agents")
	if v.Exited > 0 {
		agents += fmt.Sprintf(" (%d exited)", v.Exited)
	}
	watched := fmt.Sprintf("%s %s, watched for %s", agents, v.where, units.Age(v.length()))
	switch n := v.problems(); {
	case n > 0:
		fmt.Fprintf(say, "%s; %s\n", plural(n, "problem", "problems"), watched)
	case v.Agents == v.Exited: // rings that exited agents left empty aren't opened
		next := ""
		if v.Directory != "" {
			next = " To see its rings, run: nixlring ls " + units.Printable(v.Directory)
		}
		fmt.Fprintf(say, "Nothing to watch: no agent %s is running.%s\n", v.where, next)
	default:
		fmt.Fprintf(say, "%s%s\n", v.headline(), watched)
	}
	for _, warning := range v.Warnings {
		fmt.Fprintf(say, "Warning: %s\n", warning)
	}
	for _, g := range diagnose.Group(v.Findings) {
		if _, err := fmt.Fprint(w.out, "\n"+findings(g)); err != nil {
			return err
		}
	}
	if v.Agents > v.Exited && len(v.Unjudged) > 0 {
		if len(v.Findings) > 0 {
			fmt.Fprintln(say)
		}
		fmt.Fprintln(say, "Not judged:")
		names := make(map[string][]string)
		for _, c := range v.Unjudged {
			names[c.Reason] = append(names[c.Reason], c.Name)
		}
		for _, c := range v.Unjudged {
			if c.Name == names[c.Reason][0] {
				fmt.Fprint(say, wrapped("  - ", "    ", strings.Join(names[c.Reason], ", ")+": "+c.Reason))
			}
		}
	}
	return nil
}

// length returns the length of the watch, rounded to seconds.
func (v *verdict) length() time.Duration {
	return time.Duration(v.Seconds*float64(time.Second) + float64(time.Second)/2)
}

// headline says that nothing was found, and how much that means.
func (v *verdict) headline() string {
	switch {
	case v.Still != "":
		return wrapped("", "", "Nothing moves: "+v.Still)
	case len(v.Unjudged) > 0:
		return "Nothing found, but not everything was judged: "
	}
	return "Nothing found: "
}

// wrapped formats a text as lines of at most 80 columns.
func wrapped(first, rest, text string) string {
	lines := units.Wrap(text, 80-len(first))
	return first + strings.Join(lines, "\n"+rest) + "\n"
}

// findings formats findings of one cause as lines of at most 80 columns: the first in full, and who else has it.
func findings(group []diagnose.Finding) string {
	const most = 20
	var b strings.Builder
	f, also := group[0], []string{}
	line := func(first, rest, text string) { b.WriteString(wrapped(first, rest, text)) }
	line("", "", fmt.Sprintf("%s: %s", strings.ToUpper(string(f.Severity)), f.What))
	for _, e := range f.Evidence {
		line("  - ", "    ", e)
	}
	if f.Not != "" {
		line("  ", "  ", f.Not)
	}
	line("  ", "  ", f.Next)
	for _, other := range group[1:min(len(group), most)] {
		also = append(also, fmt.Sprintf("%s (%s)", other.Agents[0], other.Short))
	}
	if n := len(group) - most; n > 0 {
		also = append(also, fmt.Sprintf("and %d more", n))
	}
	if len(also) > 0 {
		line("  Also: ", "    ", strings.Join(also, ", "))
	}
	return b.String()
}
