// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// markers enclose a generated section of a document. Its name stands between before and named.
type markers struct{ before, named, after string }

var inMarkdown = markers{"<!-- generated from package semconv: ", " -->\n", "<!-- end of generated text -->"}

// fill replaces the generated sections of a document.
func (m markers) fill(document string, sections map[string]string) (string, error) {
	var out strings.Builder
	filled := make(map[string]bool)
	for {
		text, rest, found := strings.Cut(document, m.before)
		out.WriteString(text)
		if !found {
			break
		}
		name, rest, _ := strings.Cut(rest, m.named)
		content, ok := sections[name]
		if !ok {
			return "", fmt.Errorf("unknown section %q", name)
		}
		if filled[name] {
			return "", fmt.Errorf("section %q is repeated", name)
		}
		filled[name] = true
		_, rest, found = strings.Cut(rest, m.after)
		if !found {
			return "", fmt.Errorf("section %q has no end", name)
		}
		out.WriteString(m.before + name + m.named + content + m.after)
		document = rest
	}
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		if !filled[name] {
			return "", fmt.Errorf("section %q is missing", name)
		}
	}
	return out.String(), nil
}

// sections returns the generated sections of docs/metrics.md and of bridge/README.md by
// their names.
func sections() (document, bridge map[string]string) {
	all := byKey()
	document, bridge = map[string]string{"buckets": buckets()}, make(map[string]string)
	for _, p := range parts() {
		out := document
		if p.goOnly { // semconv/registry describes the attributes
			out = bridge
		} else {
			out[p.Name+" attributes"] = attributes(p.Attributes)
		}
		if len(p.Metrics) > 0 {
			out[p.Name+" metrics"] = metrics(p.Metrics, all)
		}
		if len(p.Resource) > 0 {
			out[p.Name+" resource"] = attributes(p.Resource)
		}
		if len(p.Events) > 0 {
			out[p.Name+" events"] = events(p.Events, all)
		}
	}
	return document, bridge
}

func metrics(list []semconv.Metric, all map[string]semconv.Attribute) string {
	var t table
	t.row("metric", "kind", "unit", "attributes", "description")
	t.rule(5)
	for _, m := range list {
		description := join(m.Description, m.Note)
		if m.OptIn {
			description = join(description, "Off by default in the receiver.")
		}
		t.row(code(m.Name), m.Kind.String(), code(m.Unit), keys(m.Attributes, m.Conditional, all), description)
	}
	return t.String()
}

func events(list []semconv.Event, all map[string]semconv.Attribute) string {
	var t table
	t.row("event", "severity", "attributes", "description")
	t.rule(4)
	for _, e := range list {
		t.row(code(e.Name), e.Severity, keys(e.Attributes, e.Conditional, all), join(e.Description, e.Note))
	}
	return t.String()
}

func attributes(list []semconv.Attribute) string {
	var t table
	t.row("attribute", "type", "values", "description")
	t.rule(4)
	for _, a := range list {
		description := join(a.Description, a.Note)
		switch {
		case a.OptIn:
			description = join(description, "Off by default.")
		case a.Condition != "":
			description = join(description, "Present only "+a.Condition+".")
		}
		t.row(code(a.Key), a.Type, values(a), description)
	}
	return t.String()
}

// values lists the values of an attribute, or examples.
func values(a semconv.Attribute) string {
	var list []string
	for _, v := range a.Values {
		list = append(list, code(v.Value)+": "+v.Description)
	}
	if list != nil {
		return strings.Join(list, "<br>")
	}
	for _, e := range a.Examples {
		list = append(list, code(e))
	}
	return "for example " + strings.Join(list, ", ")
}

// keys lists attributes, and says which of them may be absent.
func keys(required, conditional []string, all map[string]semconv.Attribute) string {
	var list []string
	for _, key := range required {
		list = append(list, code(key))
	}
	for _, key := range conditional {
		if all[key].OptIn {
			list = append(list, code(key)+" (off by default)")
		} else {
			list = append(list, code(key)+" (conditional)")
		}
	}
	return strings.Join(list, ", ")
}

// buckets lists the default bounds of the histograms.
func buckets() string {
	var t table
	t.row("histograms", "default upper bounds")
	t.rule(2)
	names := make(map[string][]string) // by bounds
	var order []string
	for _, p := range parts() {
		for _, m := range p.Metrics {
			if m.Kind == semconv.Histogram {
				text := bounds(m)
				if names[text] == nil {
					order = append(order, text)
				}
				names[text] = append(names[text], code(m.Name))
			}
		}
	}
	for _, text := range order {
		t.row(strings.Join(names[text], ", "), text)
	}
	return t.String()
}

func bounds(m semconv.Metric) string {
	if m.Name == semconv.PacketDuration.Name {
		return "ten per decade (1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8) from 1 µs to 60 s"
	}
	format := map[string]func(float64) string{"s": seconds, "By": bytes, "By/s": perSecond}[m.Unit]
	var out strings.Builder
	last := "" // unit
	for _, b := range m.Bounds {
		number, unit, _ := strings.Cut(format(b), " ")
		switch last {
		case unit:
			out.WriteString(", ")
		case "":
		default:
			out.WriteString(" " + last + "; ")
		}
		out.WriteString(number)
		last = unit
	}
	return out.String() + " " + last
}

func seconds(v float64) string   { return scaled(v*1e9, 1000, "ns", "µs", "ms", "s") }
func bytes(v float64) string     { return scaled(v, 1024, "B", "KiB", "MiB", "GiB") }
func perSecond(v float64) string { return scaled(v, 1000, "B/s", "kB/s", "MB/s", "GB/s", "TB/s") }

// scaled formats a value in the largest of several units that is at most the value.
func scaled(v, step float64, units ...string) string {
	i := 0
	for ; v >= step-1e-6 && i < len(units)-1; i++ {
		v /= step
	}
	return strconv.FormatFloat(v, 'g', 6, 64) + " " + units[i]
}

// table writes a table in Markdown.
type table struct{ strings.Builder }

func (t *table) row(cells ...string) { fmt.Fprintf(t, "| %s |\n", strings.Join(cells, " | ")) }

func (t *table) rule(columns int) {
	fmt.Fprintln(t, "|"+strings.Join(slices.Repeat([]string{"---"}, columns), "|")+"|")
}

func code(s string) string { return "`" + s + "`" }

// join adds a sentence to another.
func join(first, second string) string { return strings.TrimSpace(first + " " + second) }
