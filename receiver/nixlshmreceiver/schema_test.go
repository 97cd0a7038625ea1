// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

func readSchema(t *testing.T) map[string]any {
	t.Helper()
	all, err := confmaptest.LoadConf("config.schema.yaml")
	must.OK(t, err)
	return all.ToStringMap()
}

func TestSchemaHasEveryKey(t *testing.T) {
	schema := readSchema(t)
	var got []string
	eachProperty(schema, schema, "", func(key string, _ map[string]any) { got = append(got, key) })
	want := leaves(reflect.TypeFor[Config](), "")
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-keys +config.schema.yaml)\n%s", d)
	}
}

func TestSchemaHasTheDefaults(t *testing.T) {
	cfg := createDefaultConfig()
	cfg.Discovery = DiscoveryConfig{Processes: defaultProcesses(), Kubelet: defaultKubelet()}
	want := make(map[string]string)
	spellAll(reflect.ValueOf(*cfg), "", want)
	schema := readSchema(t)
	eachProperty(schema, schema, "", func(key string, property map[string]any) {
		if strings.HasPrefix(key, "metrics::") || strings.HasPrefix(key, "resource_attributes::") {
			return
		}
		value, ok := property["default"]
		switch _, depends := inWords[key]; {
		case depends && ok:
			t.Errorf("%s has the default %v, but it isn't fixed", key, value)
		case !depends && spellSchema(t, value) != want[key]:
			t.Errorf("%s has the default %v, want %s", key, value, want[key])
		}
		if property["description"] == nil {
			t.Errorf("%s has no description", key)
		}
	})
}

// spellSchema spells a default in the schema as spellDefault does one of the
// configuration.
func spellSchema(t *testing.T, value any) string {
	t.Helper()
	if s, ok := value.(string); ok {
		return s
	}
	text, err := json.Marshal(value)
	must.OK(t, err)
	return strings.Trim(string(text), `"`)
}

// eachProperty calls a function for each key of the configuration that a schema has
// and that has a value.
func eachProperty(schema, of map[string]any, above string, fn func(key string, property map[string]any)) {
	of = resolve(schema, of)
	properties, _ := of["properties"].(map[string]any)
	if names, ok := of["propertyNames"].(map[string]any); ok {
		properties = make(map[string]any)
		for _, name := range names["enum"].([]any) { //nolint:errcheck // or the test panics
			properties[name.(string)] = of["additionalProperties"] //nolint:errcheck // or the test panics
		}
	}
	if properties == nil {
		fn(strings.TrimSuffix(above, "::"), of)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		eachProperty(schema, properties[name].(map[string]any), above+name+"::", fn) //nolint:errcheck // or the test panics
	}
}

// resolve merges a definition into the property that refers to it.
func resolve(schema, property map[string]any) map[string]any {
	ref, ok := property["$ref"].(string)
	if !ok {
		return property
	}
	name := strings.TrimPrefix(ref, "#/$defs/")
	merged := maps.Clone(schema["$defs"].(map[string]any)[name].(map[string]any)) //nolint:errcheck // or the test panics
	maps.Copy(merged, property)
	return merged
}
