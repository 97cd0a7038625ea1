// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

func compile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	const file = "../../receiver/nixlshmreceiver/config.schema.yaml"
	compiler := jsonschema.NewCompiler()
	must.OK(t, compiler.AddResource(file, readYAML(t, file)))
	schema, err := compiler.Compile(file)
	must.OK(t, err)
	return schema
}

func readYAML(t *testing.T, file string) (value any) {
	t.Helper()
	content, err := os.ReadFile(file)
	must.OK(t, err)
	return parse(t, string(content))
}

func parse(t *testing.T, text string) (value any) {
	t.Helper()
	must.OK(t, yaml.Unmarshal([]byte(text), &value))
	return value
}

func TestSchemaAcceptsEveryExample(t *testing.T) {
	schema := compile(t)
	files, err := filepath.Glob("../../examples/collector/*.yaml")
	must.OK(t, err)
	more, err := filepath.Glob("../../examples/collector/scale/*.yaml")
	must.OK(t, err)
	checked := 0
	for _, file := range append(files, more...) {
		all, _ := readYAML(t, file).(map[string]any)
		receivers, _ := all["receivers"].(map[string]any)
		for id, cfg := range maps.All(receivers) {
			if !strings.HasPrefix(id, "nixl_shm") {
				continue
			}
			checked++
			if err := schema.Validate(cfg); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	if checked < 5 {
		t.Errorf("only %d examples have the receiver", checked)
	}
}

func TestSchemaRejectsMistakes(t *testing.T) {
	schema := compile(t)
	for text, key := range map[string]string{
		"directory: /run/nixl":                       "directory",
		"run_interval: 100":                          "run_interval",
		"run_interval: fast":                         "run_interval",
		"mode: peek":                                 "mode",
		"max_rings: 0":                               "max_rings",
		"max_rings: many":                            "max_rings",
		"allowed_uids: []":                           "allowed_uids",
		"allowed_uids: [4294967295]":                 "allowed_uids",
		"identify_by: [name]":                        "identify_by",
		"discovery: {processes: {intervall: 1s}}":    "intervall",
		"histograms: {size: {kind: linear}}":         "kind",
		"metrics: {nixl.nonsense: {enabled: false}}": "nixl.nonsense",
		"metrics: {nixl.errors: {enabled: maybe}}":   "enabled",
		"resource_attributes: {host.name: {metrics_include: [{a: b}]}}": "metrics_include",
		"resource_attributes: {host.name: {metrics_include: {a: b}}}":   "metrics_include",
		"resource_attributes: {host.nam: {enabled: false}}":             "host.nam",
	} {
		if err := schema.Validate(parse(t, text)); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: error is %v, want one about %s", text, err, key)
		}
	}
}

func TestSchemaAcceptsEnvironmentVariables(t *testing.T) {
	schema := compile(t)
	for _, text := range []string{
		"run_interval: ${env:NIXL_TELEMETRY_RUN_INTERVAL:-100}ms",
		"max_rings: ${env:RINGS}",
		"directories: ${env:DIRECTORIES}",
		"mode: ${env:NIXL_MODE}",
		"histograms: {duration: {kind: '${env:KIND}'}}",
		"allowed_uids: ['${env:UID}']",
		"discovery: {processes: }",
	} {
		if err := schema.Validate(parse(t, text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
