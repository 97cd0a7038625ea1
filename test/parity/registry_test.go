// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/semconv"
)

const registryDir = "../../semconv/registry"

// group is a group of the registry, with the keys of Weaver's syntax that the
// registry uses.
type group struct {
	ID                 string              `yaml:"id"`
	Type               string              `yaml:"type"`
	DisplayName        string              `yaml:"display_name"`
	Name               string              `yaml:"name"`
	MetricName         string              `yaml:"metric_name"`
	Stability          string              `yaml:"stability"`
	Brief              string              `yaml:"brief"`
	Note               string              `yaml:"note"`
	Instrument         string              `yaml:"instrument"`
	Unit               string              `yaml:"unit"`
	EntityAssociations []string            `yaml:"entity_associations"`
	Attributes         []registryAttribute `yaml:"attributes"`
	Annotations        struct {
		CodeGeneration struct {
			MetricValueType string `yaml:"metric_value_type"`
		} `yaml:"code_generation"`
	} `yaml:"annotations"`
}

type registryAttribute struct {
	ID               string   `yaml:"id"`
	Ref              string   `yaml:"ref"`
	Type             attrType `yaml:"type"`
	Stability        string   `yaml:"stability"`
	Brief            string   `yaml:"brief"`
	Note             string   `yaml:"note"`
	Examples         []any    `yaml:"examples"`
	Role             string   `yaml:"role"`
	RequirementLevel level    `yaml:"requirement_level"`
}

// attrType is the name of a type, or the values of an enumeration.
type attrType struct {
	Name    string
	Members []struct {
		ID        string `yaml:"id"`
		Value     string `yaml:"value"`
		Brief     string `yaml:"brief"`
		Stability string `yaml:"stability"`
	} `yaml:"members"`
}

func (a *attrType) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(&a.Name)
	}
	type plain attrType
	return n.Decode((*plain)(a))
}

// level is a requirement level, and its condition if it is conditional.
type level struct{ Name, Condition string }

func (l *level) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(&l.Name)
	}
	var conditional struct {
		Condition string `yaml:"conditionally_required"`
	}
	l.Name = "conditionally_required"
	err := n.Decode(&conditional)
	l.Condition = conditional.Condition
	return err
}

// readRegistry returns the groups of the registry by their IDs.
func readRegistry(t *testing.T) map[string]group {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(registryDir, "*.yaml"))
	must.OK(t, err)
	groups := make(map[string]group)
	for _, file := range files {
		if filepath.Base(file) == "manifest.yaml" {
			continue
		}
		content, err := os.ReadFile(file)
		must.OK(t, err)
		var all struct {
			Groups []group `yaml:"groups"`
		}
		decoder := yaml.NewDecoder(bytes.NewReader(content))
		decoder.KnownFields(true)
		if err := decoder.Decode(&all); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, g := range all.Groups {
			if _, twice := groups[g.ID]; twice {
				t.Errorf("%s: the group %s is defined twice", file, g.ID)
			}
			groups[g.ID] = g
		}
	}
	return groups
}

func catalogMetrics() []semconv.Metric {
	return slices.Concat(semconv.NIXL(), semconv.RingKernel(), semconv.SplitInference())
}

func catalogAttributes() []semconv.Attribute {
	return slices.Concat(semconv.ResourceAttributes(), semconv.NIXLAttributes(), semconv.RingKernelAttributes(),
		semconv.SplitInferenceAttributes(), semconv.SharedAttributes())
}

func TestRegistryHasEveryMetricAndEventOfTheCatalog(t *testing.T) {
	type entry struct {
		Name, Brief, Note, Instrument, Unit, Values string
		Required, Conditional                       []string
	}
	levels := func(g group) (required, conditional []string) {
		for _, a := range g.Attributes {
			if a.RequirementLevel.Name == "required" {
				required = append(required, a.Ref)
			} else {
				conditional = append(conditional, a.Ref)
			}
		}
		return required, conditional
	}
	got := make(map[string]entry)
	for id, g := range readRegistry(t) {
		switch g.Type {
		case "metric", "event":
			e := entry{
				Name: g.MetricName + g.Name, Brief: g.Brief, Note: g.Note, Instrument: g.Instrument, Unit: g.Unit,
				Values: g.Annotations.CodeGeneration.MetricValueType,
			}
			e.Required, e.Conditional = levels(g)
			got[id] = e
			if g.Stability == "" {
				t.Errorf("%s has no stability", id)
			}
			if strings.HasPrefix(e.Name, "nixl.") != slices.Equal(g.EntityAssociations, []string{"nixl.agent"}) {
				t.Errorf("%s belongs to the entities %v", id, g.EntityAssociations)
			}
		}
	}
	want := make(map[string]entry)
	for _, m := range catalogMetrics() {
		want["metric."+m.Name] = entry{
			Name: m.Name, Brief: m.Description, Note: m.Note, Instrument: strings.ReplaceAll(strings.ReplaceAll(m.Kind.String(), "-", ""), " ", ""),
			Unit: m.Unit, Values: map[semconv.Number]string{semconv.Int64: "int", semconv.Float64: "double"}[m.Number],
			Required: m.Attributes, Conditional: m.Conditional,
		}
	}
	for _, e := range semconv.NIXLEvents() {
		want["event."+e.Name] = entry{
			Name: e.Name, Brief: e.Description, Note: "Severity: " + e.Severity + ". " + e.Note,
			Required: e.Attributes, Conditional: e.Conditional,
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-semconv +registry)\n%s", d)
	}
}

func TestRegistryDefinesEveryAttributeOfTheCatalog(t *testing.T) {
	type entry struct {
		Type, Brief, Note string
		Values            []semconv.Value
	}
	got := make(map[string]entry)
	groups := readRegistry(t)
	for id, g := range groups {
		if g.Type != "attribute_group" {
			continue
		}
		for _, a := range g.Attributes {
			e := entry{Type: a.Type.Name, Brief: a.Brief, Note: a.Note}
			for _, v := range a.Type.Members {
				e.Values = append(e.Values, semconv.Value{Value: v.Value, Description: v.Brief})
				if v.Stability == "" || !regexp.MustCompile(`^[a-z][a-z0-9_]*$`).MatchString(v.ID) {
					t.Errorf("%s: %s has the value %+v", id, a.ID, v)
				}
			}
			if a.Stability == "" || len(a.Examples)+len(a.Type.Members) == 0 {
				t.Errorf("%s: %s has neither examples nor values, or no stability", id, a.ID)
			}
			got[a.ID] = e
		}
	}
	want := make(map[string]entry)
	external := make(map[string]bool)
	for _, a := range catalogAttributes() {
		if a.OpenTelemetry {
			external[a.Key] = true
			continue
		}
		e := entry{Type: a.Type, Brief: a.Description, Note: a.Note, Values: a.Values}
		if a.Values != nil {
			e.Type = ""
		}
		want[a.Key] = e
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-semconv +registry)\n%s", d)
	}
	for id, g := range groups {
		for _, a := range g.Attributes {
			if _, defined := got[a.Ref]; a.Ref != "" && !defined && !external[a.Ref] {
				t.Errorf("%s refers to %s, which isn't defined", id, a.Ref)
			}
		}
	}
}

func TestEveryAttributeOfTheCatalogIsUsedAndItsPresenceStated(t *testing.T) {
	attributes := make(map[string]semconv.Attribute)
	for _, a := range catalogAttributes() {
		if _, twice := attributes[a.Key]; twice {
			t.Errorf("%s is described twice", a.Key)
		}
		attributes[a.Key] = a
	}
	used := map[string]bool{semconv.PeerAgentName: true, semconv.BackendName: true} // for programs to add
	for _, a := range semconv.ResourceAttributes() {
		used[a.Key] = true
	}
	check := func(name string, required, conditional []string) {
		for _, key := range slices.Concat(required, conditional) {
			used[key] = true
			a, described := attributes[key]
			if !described {
				t.Errorf("%s has the attribute %s, which isn't described", name, key)
			}
			if slices.Contains(conditional, key) && a.Condition == "" && !a.OptIn {
				t.Errorf("nothing states when %s has the attribute %s", name, key)
			}
		}
	}
	for _, m := range catalogMetrics() {
		check(m.Name, m.Attributes, m.Conditional)
	}
	for _, e := range semconv.NIXLEvents() {
		check(e.Name, e.Attributes, e.Conditional)
	}
	for key := range attributes {
		if !used[key] {
			t.Errorf("no metric or event has the attribute %s", key)
		}
	}
}

func TestNoMetricNameIsANamespace(t *testing.T) {
	for _, m := range catalogMetrics() {
		for _, other := range catalogMetrics() {
			if strings.HasPrefix(other.Name, m.Name+".") {
				t.Errorf("%s is the namespace of %s", m.Name, other.Name)
			}
		}
	}
}
