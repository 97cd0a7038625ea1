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

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

func readYAML(t *testing.T, file string) (value any) {
	t.Helper()
	content, err := os.ReadFile(file)
	must.OK(t, err)
	must.OK(t, yaml.Unmarshal(content, &value))
	return value
}

func TestSchemaAcceptsExamplesAndRejectsMistakes(t *testing.T) {
	const file = "../../receiver/nixlshmreceiver/config.schema.yaml"
	compiler := jsonschema.NewCompiler()
	must.OK(t, compiler.AddResource(file, readYAML(t, file)))
	schema, err := compiler.Compile(file)
	must.OK(t, err)

	files, err := filepath.Glob("../../examples/collector/*.yaml")
	must.OK(t, err)
	more, err := filepath.Glob("../../examples/collector/scale/*.yaml")
	must.OK(t, err)
	checked := 0
	for _, file := range append(files, more...) {
		all, _ := readYAML(t, file).(map[string]any)
		receivers, _ := all["receivers"].(map[string]any)
		for id, cfg := range maps.All(receivers) {
			if strings.HasPrefix(id, "nixl_shm") {
				checked++
				if err := schema.Validate(cfg); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
		}
	}
	if checked < 5 {
		t.Errorf("only %d examples have the receiver", checked)
	}

	for text, key := range map[string]string{ // no key if the text is right
		"collection_interval: ${env:INTERVAL:-10}s":         "",
		"logs: {rate: '${env:RATE}'}":                       "",
		"discovery: {processes: }":                          "",
		"directory: /run/nixl":                              "directory",
		"collection_interval: 10":                           "collection_interval",
		"mode: peek":                                        "mode",
		"discovery: {processes: {intervall: 1s}}":           "intervall",
		"metrics: {nixl.nonsense: {enabled: false}}":        "nixl.nonsense",
		"resource_attributes: {host.nam: {enabled: false}}": "host.nam",
	} {
		var value any
		must.OK(t, yaml.Unmarshal([]byte(text), &value))
		err := schema.Validate(value)
		if key == "" && err != nil || key != "" && (err == nil || !strings.Contains(err.Error(), key)) {
			t.Errorf("%s: error is %v, want one about %q", text, err, key)
		}
	}
}
