// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"iter"
	"strings"

	"go.yaml.in/yaml/v3"
)

// property is the part of JSON Schema that config.schema.yaml uses to describe a key.
type property struct {
	Ref           string              `yaml:"$ref"`
	Defs          map[string]property `yaml:"$defs"`
	Description   string              `yaml:"description"`
	Type          yaml.Node           `yaml:"type"`
	Default       yaml.Node           `yaml:"default"`
	Examples      []yaml.Node         `yaml:"examples"`
	Properties    properties          `yaml:"properties"`
	PropertyNames struct {
		Enum []string `yaml:"enum"`
	} `yaml:"propertyNames"`
	AdditionalProperties yaml.Node `yaml:"additionalProperties"`
}

// properties are keys in the order of the file.
type properties struct{ yaml.Node }

func (p *properties) UnmarshalYAML(n *yaml.Node) error {
	p.Node = *n
	return nil
}

func (p *properties) all() iter.Seq2[string, property] {
	return func(yield func(string, property) bool) {
		for i := 0; i < len(p.Content); i += 2 {
			var value property
			if err := p.Content[i+1].Decode(&value); err != nil {
				panic(err) // it was decoded from YAML
			}
			if !yield(p.Content[i].Value, value) {
				return
			}
		}
	}
}

// generator writes the table and the example.
type generator struct {
	schema   property
	metadata map[string]yaml.Node

	table, example strings.Builder
	commented      bool
}

// key writes a key and those below it. Optional keys without a default are commented out.
func (g *generator) key(above, name string, p property, optional bool) error {
	if def, ok := g.schema.Defs[strings.TrimPrefix(p.Ref, "#/$defs/")]; ok {
		def.Description = p.Description + def.Description
		if !p.Default.IsZero() {
			def.Default = p.Default
		}
		def.Examples = append(def.Examples, p.Examples...)
		p = def
	}
	path := above + name
	value := p.Default
	if value.IsZero() && len(p.Examples) > 0 {
		value = p.Examples[0]
	}
	section := value.IsZero()
	if p.Type.Kind == yaml.SequenceNode && len(p.Properties.Content) > 0 || !section && p.Default.IsZero() && optional { // or null
		defer func(was bool) { g.commented = was }(g.commented)
		g.commented = true
	}
	level := 2 + strings.Count(path, "::")
	if level == 2 && g.table.Len() > 0 {
		g.example.WriteString("\n")
	}
	g.row(path, p)
	for _, line := range wrap(p.Description, 110-2*level) {
		g.line(level, "# "+line)
	}
	switch {
	case len(p.PropertyNames.Enum) > 0:
		g.line(level, name+":")
		return g.switches(path, p.PropertyNames.Enum)
	case section:
		g.line(level, name+":")
	default:
		text, err := flow(value)
		if err != nil {
			return err
		}
		g.line(level, name+": "+text)
	}
	for child, of := range p.Properties.all() {
		if err := g.key(path+"::", child, of, true); err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) row(path string, p property) {
	if p.Description == "" {
		return
	}
	text := ""
	if !p.Default.IsZero() {
		text, _ = flow(p.Default) //nolint:errcheck // key reports it
		text = "`" + text + "`"
	}
	fmt.Fprintf(&g.table, "| `%s` | %s | %s |\n", path, text, p.Description)
}

// switches writes the metrics or attributes that metadata.yaml declares.
func (g *generator) switches(section string, names []string) error {
	var declared map[string]struct{ Enabled bool }
	node := g.metadata[section]
	if err := node.Decode(&declared); err != nil {
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
	value.Style = yaml.FlowStyle
	if value.Kind == yaml.ScalarNode {
		value.Style = 0
	}
	text, err := yaml.Marshal(&value)
	return strings.TrimSpace(string(text)), err
}

// wrap splits a text into lines.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+len(word) >= width {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
