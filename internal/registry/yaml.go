// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	_ "embed" // for the templates
	"path"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/nixl-otel/nixl-otel/semconv"
)

//go:embed registry.tmpl
var text string

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"always": always, "anchor": anchor, "base": path.Base, "examples": examples, "id": id, "instrument": instrument,
	"join": func(list []string) string { return strings.Join(list, ", ") }, "number": number, "quote": strconv.Quote, "references": references,
}).Parse(text))

// render returns the text of a template, which depends on nothing but package semconv.
func render(name string, data any) string {
	var out strings.Builder
	if err := templates.ExecuteTemplate(&out, name, data); err != nil {
		panic(err)
	}
	return out.String()
}

// files returns the files of the registry by their names.
func files() map[string]string {
	all := map[string]string{"manifest.yaml": render("manifest", struct{ Version, SchemaURL string }{semconv.Version, semconv.SchemaURL})}
	for _, p := range parts() {
		all[p.Name+".yaml"] = render("part", p)
	}
	return all
}

// Defined returns the attributes that this registry defines.
func (p part) Defined() []semconv.Attribute {
	return slices.DeleteFunc(slices.Concat(p.Resource, p.Attributes), func(a semconv.Attribute) bool { return a.OpenTelemetry })
}

// reference is a reference to an attribute. It overrides the description of one of
// OpenTelemetry's.
type reference struct {
	semconv.Attribute
	Required bool
}

// always returns the reference of a resource, which has an attribute always unless it has a
// condition.
func always(a semconv.Attribute) reference { return reference{a, a.Condition == "" && !a.OptIn} }

func references(required, conditional []string) (list []reference) {
	all := byKey()
	for _, key := range required {
		list = append(list, reference{all[key], true})
	}
	for _, key := range conditional {
		list = append(list, reference{all[key], false})
	}
	return list
}

var inMetadata = markers{"  # Generated from package semconv: ", "\n", "  # End of generated text."}

// metadata returns the generated sections of the receiver's metadata.yaml, from which mdatagen
// generates code. It lacks histograms, because mdatagen generates none. mdatagen requires an
// order of attributes, so those of the receiver itself are between the sections.
func metadata() map[string]string {
	resource := sortedByKey(semconv.ResourceAttributes())
	for i := range resource {
		if a := &resource[i]; a.Condition != "" {
			a.Description += " Present only " + a.Condition + "."
		}
	}
	metrics := semconv.NIXL()
	slices.SortFunc(metrics, func(a, b semconv.Metric) int { return cmp.Compare(a.Name, b.Name) })
	unused := func(a semconv.Attribute) bool {
		return !slices.ContainsFunc(metrics, func(m semconv.Metric) bool { return slices.Contains(m.Attributes, a.Key) })
	}
	return map[string]string{
		"resource":          render("resource", resource),
		"shared attributes": render("points", slices.DeleteFunc(sortedByKey(semconv.SharedAttributes()), unused)),
		"nixl attributes":   render("points", slices.DeleteFunc(sortedByKey(semconv.NIXLAttributes()), unused)),
		"metrics":           render("metrics", slices.DeleteFunc(slices.Clone(metrics), func(m semconv.Metric) bool { return m.Kind == semconv.Histogram })),
	}
}

func sortedByKey(list []semconv.Attribute) []semconv.Attribute {
	return slices.SortedFunc(slices.Values(list), func(a, b semconv.Attribute) int { return cmp.Compare(a.Key, b.Key) })
}

// anchor returns where OpenTelemetry describes an attribute.
func anchor(key string) string {
	namespace, _, _ := strings.Cut(key, ".")
	return namespace + ".md#" + strings.NewReplacer(".", "-", "_", "-").Replace(key)
}

func examples(a semconv.Attribute) string {
	list := slices.Clone(a.Examples)
	if a.Type == "string" {
		for i, e := range list {
			list[i] = strconv.Quote(e)
		}
	}
	return strings.Join(list, ", ")
}

func id(value string) string { return strings.ToLower(strings.ReplaceAll(value, "-", "_")) }

func instrument(k semconv.Kind) string {
	return strings.NewReplacer("up-down counter", "updowncounter").Replace(k.String())
}

func number(n semconv.Number) string {
	if n == semconv.Int64 {
		return "int"
	}
	return "double"
}
