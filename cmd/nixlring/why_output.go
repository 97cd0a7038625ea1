// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// text returns what a person reads.
func (v *verdict) text() string {
	var b strings.Builder
	line := func(first, rest, text string) { b.WriteString(wrapped(first, rest, text)) }
	fmt.Fprintln(&b, v.headline())
	for _, warning := range v.Warnings {
		fmt.Fprintf(&b, "Warning: %s\n", warning)
	}
	for _, g := range diagnose.Group(v.Findings) {
		b.WriteString("\n" + findings(g, v.Backend != ""))
	}
	if v.Agents == v.Exited {
		return b.String()
	}
	b.WriteString("\nCompared:\n")
	for _, c := range v.Checks {
		if !slices.ContainsFunc(v.Findings, func(f diagnose.Finding) bool { return slices.Contains(c.Kinds, f.Kind) }) {
			line("  - ", "    ", c.Name+": "+c.What)
		}
	}
	if v.length() < diagnose.CrashWindow {
		line("", "", "A short watch misses what comes and goes; --for watches longer, and the alerts compare with the last day.")
	}
	return b.String()
}

// length returns the length of the watch, rounded to seconds.
func (v *verdict) length() time.Duration {
	return time.Duration(v.Seconds*float64(time.Second) + float64(time.Second)/2)
}

// headline says what was found, or that nothing was, and about whom.
func (v *verdict) headline() string {
	agents := plural(v.Agents, "agent", "agents")
	if v.Exited > 0 {
		agents += fmt.Sprintf(" (%d exited)", v.Exited)
	}
	watched := fmt.Sprintf("; %s %s, watched for %s", agents, v.where, units.Age(v.length()))
	if v.Backend != "" {
		watched = fmt.Sprintf("; %s %s, in the %s until %s", agents, v.where, units.Age(v.length()), v.Until.Format(time.RFC3339))
	}
	switch n := v.problems(); {
	case n > 0:
		return plural(n, "problem", "problems") + watched
	case v.Agents == v.Exited: // rings that exited agents left empty aren't opened
		next := ""
		switch {
		case v.Directory != "":
			next = " To see its rings, run: nixlring ls " + units.Printable(v.Directory)
		case v.volumes:
			next = " NIXL_TELEMETRY_DIR must be on an emptyDir volume of the agents' pods."
		}
		return fmt.Sprintf("Nothing to watch: no agent %s is running.%s", v.where, next)
	}
	return diagnose.Headline(v.Findings, v.Checks, v.Still) + watched
}

// wrapped formats a text as lines of at most 80 columns.
func wrapped(first, rest, text string) string {
	lines := units.Wrap(text, 80-len(first))
	return first + strings.Join(lines, "\n"+rest) + "\n"
}

// findings formats findings of one cause as lines of at most 80 columns: the first in full, and who else has it.
// If they are of the past, it says since when.
func findings(group []diagnose.Finding, past bool) string {
	const most = 20
	var b strings.Builder
	f, also := group[0], []string{}
	line := func(first, rest, text string) { b.WriteString(wrapped(first, rest, text)) }
	line("", "", fmt.Sprintf("%s: %s", strings.ToUpper(string(f.Severity)), f.What))
	if past && !f.Since.IsZero() {
		line("  - ", "    ", "since about "+f.Since.UTC().Format(time.RFC3339))
	}
	for _, e := range f.Evidence {
		line("  - ", "    ", e)
	}
	if f.Not != "" {
		line("  ", "  ", f.Not)
	}
	line("  ", "  ", f.Next)
	for _, command := range f.Commands {
		b.WriteString("    " + command + "\n")
	}
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
