// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nixl-otel/nixl-otel/semconv"
)

var inMetadata = markers{"  # Generated from package semconv: ", "\n", "  # End of generated text."}

// metadata returns the generated sections of the receiver's metadata.yaml, from which mdatagen
// generates code. It lacks histograms, because mdatagen generates none. mdatagen requires an
// order of attributes, so those of the receiver itself are between the sections.
func metadata() map[string]string {
	var resource, metrics yaml
	for _, a := range sortedByKey(semconv.ResourceAttributes()) {
		resource.resourceAttribute(a)
	}
	used := make(map[string]bool)
	list := semconv.NIXL()
	slices.SortFunc(list, func(a, b semconv.Metric) int { return cmp.Compare(a.Name, b.Name) })
	for _, m := range list {
		for _, key := range m.Attributes {
			used[key] = true
		}
		if m.Kind != semconv.Histogram {
			metrics.declaration(m)
		}
	}
	return map[string]string{
		"resource": resource.String(), "metrics": metrics.String(),
		"shared attributes": pointAttributes(semconv.SharedAttributes(), used), "nixl attributes": pointAttributes(semconv.NIXLAttributes(), used),
	}
}

// pointAttributes returns the declarations of the attributes that metrics use.
func pointAttributes(list []semconv.Attribute, used map[string]bool) string {
	var y yaml
	for _, a := range sortedByKey(list) {
		if used[a.Key] {
			y.pointAttribute(a)
		}
	}
	return y.String()
}

func sortedByKey(list []semconv.Attribute) []semconv.Attribute {
	return slices.SortedFunc(slices.Values(list), func(a, b semconv.Attribute) int { return cmp.Compare(a.Key, b.Key) })
}

func (y *yaml) resourceAttribute(a semconv.Attribute) {
	if a.Condition != "" {
		a.Description += " Present only " + a.Condition + "."
	}
	y.attribute(a)
	y.line(2, "enabled: %t", !a.OptIn)
	y.origin(a)
}

func (y *yaml) pointAttribute(a semconv.Attribute) {
	y.attribute(a)
	if a.Key == semconv.Direction || a.Key == semconv.MemoryOperation { // the code writes the others as strings
		var values []string
		for _, v := range a.Values {
			values = append(values, v.Value)
		}
		y.line(2, "enum: [%s]", strings.Join(values, ", "))
	}
	y.line(2, "requirement_level: required")
	y.origin(a)
}

func (y *yaml) attribute(a semconv.Attribute) {
	y.line(1, "%s:", a.Key)
	y.text(2, "description", a.Description)
	y.line(2, "type: %s", a.Type)
}

// origin writes where OpenTelemetry defines an attribute.
func (y *yaml) origin(a semconv.Attribute) {
	if a.OpenTelemetry {
		namespace, _, _ := strings.Cut(a.Key, ".")
		y.line(2, "semantic_convention:")
		y.line(3, "ref: %s.md#%s", namespace, strings.NewReplacer(".", "-", "_", "-").Replace(a.Key))
	}
}

func (y *yaml) declaration(m semconv.Metric) {
	y.line(1, "%s:", m.Name)
	y.line(2, "enabled: %t", !m.OptIn)
	y.text(2, "description", m.Description)
	y.text(2, "extended_documentation", m.Note)
	y.line(2, "stability: %s", stability)
	y.text(2, "unit", m.Unit)
	number := "int"
	if m.Number == semconv.Float64 {
		number = "double"
	}
	if m.Kind == semconv.Gauge {
		y.line(2, "gauge:")
		y.line(3, "value_type: %s", number)
	} else {
		y.line(2, "sum:")
		y.line(3, "value_type: %s", number)
		y.line(3, "monotonic: %t", m.Kind == semconv.Counter)
		y.line(3, "aggregation_temporality: cumulative")
	}
	if len(m.Attributes) > 0 {
		y.line(2, "attributes: [%s]", strings.Join(m.Attributes, ", "))
	}
}
