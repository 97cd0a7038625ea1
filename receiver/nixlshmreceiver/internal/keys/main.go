// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Command keys writes what is generated from config.schema.yaml: the table of the keys in
// README.md, and an example with every key.
//
//	keys README EXAMPLE
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	begin = "<!-- generated from config.schema.yaml -->\n"
	end   = "<!-- end of generated text -->"

	header = `# Generated from receiver/nixlshmreceiver/config.schema.yaml. DO NOT EDIT.
#
# Every key of the receiver nixl_shm with its default. Keys without a default, and discovery,
# are commented out.
#
#   NIXL_TELEMETRY_DIR  directory of the rings [/tmp]

receivers:
  nixl_shm:
`
	footer = `
exporters:
  debug: # one line per collection on the terminal
    verbosity: basic

service:
  pipelines:
    metrics:
      receivers: [nixl_shm]
      exporters: [debug]
`
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "keys:", err)
		os.Exit(1)
	}
}

func run(readme, example string) error {
	var g generator
	if err := errors.Join(read("config.schema.yaml", &g.schema), read("metadata.yaml", &g.metadata)); err != nil {
		return err
	}
	if err := g.keys("", g.schema.Properties.Content); err != nil {
		return err
	}
	text, err := os.ReadFile(readme)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return fmt.Errorf("%s has no %q or no %q", readme, begin, end)
	}
	return errors.Join(
		os.WriteFile(readme, []byte(before+begin+"| key | default | |\n|---|---|---|\n"+g.table.String()+end+after), 0o644),
		os.WriteFile(example, []byte(header+g.example.String()+footer), 0o644))
}

func read(path string, to any) error {
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(text, to)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// property is the part of JSON Schema that describes a key in config.schema.yaml.
type property struct {
	Ref           string              `yaml:"$ref"`
	Defs          map[string]property `yaml:"$defs"`
	Description   string              `yaml:"description"`
	Type          yaml.Node           `yaml:"type"`
	Default       yaml.Node           `yaml:"default"`
	Examples      []yaml.Node         `yaml:"examples"`
	Properties    yaml.Node           `yaml:"properties"` // in the order of the file
	PropertyNames struct {
		Enum []string `yaml:"enum"`
	} `yaml:"propertyNames"`
}

// generator writes the table and the example.
type generator struct {
	schema   property
	metadata map[string]yaml.Node

	table, example strings.Builder
	commented      bool // whether keys of the example are commented out
}

func (g *generator) keys(above string, list []*yaml.Node) error {
	for i := 0; i < len(list); i += 2 {
		var p property
		if err := list[i+1].Decode(&p); err != nil {
			return err
		}
		if err := g.key(above+list[i].Value, list[i].Value, p); err != nil {
			return err
		}
	}
	return nil
}

// key writes a key and those below it.
func (g *generator) key(path, name string, p property) error {
	if def, ok := g.schema.Defs[strings.TrimPrefix(p.Ref, "#/$defs/")]; ok {
		p.Type, p.Properties = def.Type, def.Properties
	}
	value := " "
	if !p.Default.IsZero() {
		text, err := flow(p.Default)
		if err != nil {
			return err
		}
		fmt.Fprintf(&g.table, "| `%s` | `%s` | %s |\n", path, text, p.Description)
		value += text
	} else if p.Description != "" {
		fmt.Fprintf(&g.table, "| `%s` | | %s |\n", path, p.Description)
	}
	level := 2 + strings.Count(path, "::")
	if level == 2 && g.example.Len() > 0 {
		g.example.WriteString("\n")
	}
	for _, line := range wrap(p.Description, 110-2*level) {
		g.line(level, "# "+line)
	}
	defer func(was bool) { g.commented = was }(g.commented)
	optional := p.Type.Kind == yaml.SequenceNode && !p.Properties.IsZero() // a section, or null
	g.commented = g.commented || optional || p.Default.IsZero() && len(p.Examples) > 0 && name != "directories"
	if p.Default.IsZero() && len(p.Examples) > 0 {
		text, err := flow(p.Examples[0])
		if err != nil {
			return err
		}
		value += text
	}
	g.line(level, strings.TrimSpace(name+":"+value))
	if err := g.switches(path, p.PropertyNames.Enum); err != nil {
		return err
	}
	return g.keys(path+"::", p.Properties.Content)
}

// switches writes the metrics or attributes that metadata.yaml declares.
func (g *generator) switches(section string, names []string) error {
	var declared map[string]struct{ Enabled bool }
	node := g.metadata[section]
	if err := node.Decode(&declared); err != nil && len(names) > 0 {
		return fmt.Errorf("metadata.yaml: %s: %w", section, err)
	}
	for _, name := range names {
		one, ok := declared[name]
		if !ok {
			return fmt.Errorf("metadata.yaml: %s has no %s", section, name)
		}
		g.line(3, fmt.Sprintf("%s: {enabled: %t}", name, one.Enabled))
	}
	return nil
}

func (g *generator) line(level int, text string) {
	if g.commented && !strings.HasPrefix(text, "# ") {
		text = "# " + text
	}
	g.example.WriteString(strings.Repeat("  ", level) + text + "\n")
}

// flow formats a value on one line.
func flow(value yaml.Node) (string, error) {
	if value.Kind != yaml.ScalarNode {
		value.Style = yaml.FlowStyle
	}
	text, err := yaml.Marshal(&value)
	return strings.TrimSpace(string(text)), err
}

// wrap splits a text into lines.
func wrap(text string, width int) (lines []string) {
	for word := range strings.FieldsSeq(text) {
		if last := len(lines) - 1; last >= 0 && len(lines[last])+len(word) < width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}
