// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nixl-otel/nixl-otel/semconv"
)

const generated = "# Code generated from package semconv. DO NOT EDIT.\n# Copyright The nixl-otel Authors\n# SPDX-License-Identifier: Apache-2.0\n"

// files returns the files of the registry by their names.
func files() map[string]string {
	all := map[string]string{"manifest.yaml": manifest()}
	for _, p := range parts() {
		var y yaml
		y.part(p)
		all[p.name+".yaml"] = generated + y.String()
	}
	return all
}

// manifest names the registry that this one refers to, which defines attributes
// such as error.type.
func manifest() string {
	version := semconv.SchemaURL[strings.LastIndex(semconv.SchemaURL, "/")+1:]
	return generated + `schema_url: https://github.com/nixl-otel/nixl-otel/semconv/` + semconv.Version + `
description: Telemetry of NIXL agents, ring kernels and split-inference sessions.
stability: ` + stability + `
dependencies:
  - schema_url: ` + semconv.SchemaURL + `
    registry_path: https://github.com/open-telemetry/semantic-conventions/archive/refs/tags/v` + version + `.zip[model]
`
}

// yaml writes a registry file.
type yaml struct{ strings.Builder }

// line writes a line that is indented by a number of levels.
func (y *yaml) line(level int, format string, args ...any) {
	fmt.Fprintf(y, strings.Repeat("  ", level)+format+"\n", args...)
}

// text writes a key with a text, unless the text is empty.
func (y *yaml) text(level int, key, text string) {
	if text != "" {
		y.line(level, "%s: %s", key, strconv.Quote(text))
	}
}

func (y *yaml) part(p part) {
	all := byKey()
	y.line(0, "groups:")
	y.line(1, "- id: registry.%s", p.name)
	y.line(2, "type: attribute_group")
	y.text(2, "display_name", "Attributes of "+p.title)
	y.text(2, "brief", "Attributes of "+p.title+".")
	y.line(2, "attributes:")
	for _, a := range slices.Concat(p.resource, p.attributes) {
		if !a.OpenTelemetry {
			y.definition(a)
		}
	}
	if len(p.resource) > 0 {
		y.entity(p)
	}
	for _, m := range p.metrics {
		y.metric(m, p, all)
	}
	for _, e := range p.events {
		y.event(e, p, all)
	}
}

func (y *yaml) definition(a semconv.Attribute) {
	y.line(3, "- id: %s", a.Key)
	if len(a.Values) == 0 {
		y.line(4, "type: %s", a.Type)
	} else {
		y.line(4, "type:")
		y.line(5, "members:")
		for _, v := range a.Values {
			y.line(6, "- id: %s", strings.ToLower(strings.ReplaceAll(v.Value, "-", "_")))
			y.text(7, "value", v.Value)
			y.text(7, "brief", v.Description)
			y.line(7, "stability: %s", stability)
		}
	}
	y.line(4, "stability: %s", stability)
	y.describe(4, a)
}

// describe writes what a definition of an attribute has, and a reference to an
// attribute of OpenTelemetry overrides.
func (y *yaml) describe(level int, a semconv.Attribute) {
	y.text(level, "brief", a.Description)
	y.text(level, "note", a.Note)
	if len(a.Examples) > 0 {
		examples := slices.Clone(a.Examples)
		if a.Type == "string" {
			for i, e := range examples {
				examples[i] = strconv.Quote(e)
			}
		}
		y.line(level, "examples: [%s]", strings.Join(examples, ", "))
	}
}

// reference writes a reference to an attribute.
func (y *yaml) reference(a semconv.Attribute, required bool) {
	y.line(3, "- ref: %s", a.Key)
	switch {
	case required:
		y.line(4, "requirement_level: required")
	case a.OptIn:
		y.line(4, "requirement_level: opt_in")
	default:
		y.line(4, "requirement_level:")
		y.text(5, "conditionally_required", a.Condition)
	}
	if a.OpenTelemetry {
		y.describe(4, a)
	}
}

// entity writes the resource. Its instance ID identifies it.
func (y *yaml) entity(p part) {
	y.line(1, "- id: entity.nixl.agent")
	y.line(2, "type: entity")
	y.line(2, "name: nixl.agent")
	y.line(2, "stability: %s", stability)
	y.text(2, "brief", "A NIXL agent.")
	y.line(2, "attributes:")
	for _, a := range p.resource {
		y.reference(a, a.Condition == "" && !a.OptIn)
		if a.Key == semconv.ServiceInstanceID {
			y.line(4, "role: identifying")
		} else {
			y.line(4, "role: descriptive")
		}
	}
}

var instruments = map[semconv.Kind]string{
	semconv.Counter: "counter", semconv.UpDownCounter: "updowncounter", semconv.Gauge: "gauge", semconv.Histogram: "histogram",
}

func (y *yaml) metric(m semconv.Metric, p part, all map[string]semconv.Attribute) {
	y.line(1, "- id: metric.%s", m.Name)
	y.line(2, "type: metric")
	y.line(2, "metric_name: %s", m.Name)
	y.line(2, "stability: %s", stability)
	y.text(2, "brief", m.Description)
	y.text(2, "note", m.Note)
	y.line(2, "instrument: %s", instruments[m.Kind])
	y.text(2, "unit", m.Unit)
	y.line(2, "annotations:")
	y.line(3, "code_generation:")
	if m.Number == semconv.Int64 {
		y.line(4, "metric_value_type: int")
	} else {
		y.line(4, "metric_value_type: double")
	}
	y.associate(p)
	y.references(m.Attributes, m.Conditional, all)
}

func (y *yaml) event(e semconv.Event, p part, all map[string]semconv.Attribute) {
	y.line(1, "- id: event.%s", e.Name)
	y.line(2, "type: event")
	y.line(2, "name: %s", e.Name)
	y.line(2, "stability: %s", stability)
	y.text(2, "brief", e.Description)
	y.text(2, "note", "Severity: "+e.Severity+". "+e.Note)
	y.associate(p)
	y.references(e.Attributes, e.Conditional, all)
}

func (y *yaml) associate(p part) {
	if len(p.resource) > 0 {
		y.line(2, "entity_associations: [nixl.agent]")
	}
}

func (y *yaml) references(required, conditional []string, all map[string]semconv.Attribute) {
	if len(required)+len(conditional) == 0 {
		return
	}
	y.line(2, "attributes:")
	for _, key := range required {
		y.reference(all[key], true)
	}
	for _, key := range conditional {
		y.reference(all[key], false)
	}
}
