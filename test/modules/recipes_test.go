// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/confmap"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
)

const slim, full = "builder-config.yaml", "builder-full.yaml"

// The full Collector can replace the slim one because it has the same components. Some have a lower version; comments in
// the recipe give the reason.
func TestFullRecipeIncludesSlimRecipe(t *testing.T) {
	t.Parallel()
	larger := types(t, full)
	for _, component := range types(t, slim) {
		if !slices.Contains(larger, component) {
			t.Errorf("%s has no %s", full, component)
		}
	}
}

// A configuration must work with the Collector that its README names.
func TestConfigurationsNameOnlyWhatTheirRecipeIncludes(t *testing.T) {
	t.Parallel()
	for pattern, recipe := range map[string]string{
		"examples/collector/[^n]*.yaml":                   slim, // all but the next
		"examples/collector/nixl-exporter-names.yaml":     full,
		"examples/collector/scale/*.yaml":                 full,
		"examples/kubernetes/opentelemetrycollector.yaml": full,
	} {
		included := types(t, recipe)
		files, err := filepath.Glob(filepath.Join(ringtest.Root(t), pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, error %v", pattern, len(files), err)
		}
		for _, file := range files {
			for _, component := range configured(t, file) {
				if !slices.Contains(included, component) {
					t.Errorf("%s configures %s, which %s doesn't include", file, component, recipe)
				}
			}
		}
	}
}

// kinds are the parts of a recipe, and of a configuration, that name components.
var kinds = []string{"receivers", "processors", "exporters", "extensions"}

// components returns the modules in a recipe, with their versions.
func components(t *testing.T, recipe string) map[string]bool {
	t.Helper()
	config := load(t, filepath.Join(ringtest.Root(t), recipe))
	list := make(map[string]bool)
	for _, kind := range kinds {
		entries, _ := config.Get(kind).([]any)
		if len(entries) == 0 {
			t.Fatalf("%s has no %s", recipe, kind)
		}
		for _, entry := range entries {
			module, _ := entry.(map[string]any)["gomod"].(string)
			list[kind+" "+module] = true
		}
	}
	return list
}

// types returns the components of a recipe, named by the types that
// configurations use.
func types(t *testing.T, recipe string) (list []string) {
	t.Helper()
	for component := range components(t, recipe) {
		kind, module, _ := strings.Cut(component, " ")
		module, _, _ = strings.Cut(module, " ")
		name := strings.TrimSuffix(path.Base(module), strings.TrimSuffix(kind, "s"))
		if component := kind + "/" + name; component == "exporters/otlp" {
			name += "grpc"
		}
		list = append(list, kind+"/"+name)
	}
	return list
}

// configured returns the components that a configuration names. It removes
// underscores because the modules' names have none.
func configured(t *testing.T, file string) (list []string) {
	t.Helper()
	config := load(t, file)
	if nested, err := config.Sub("spec::config"); err == nil && len(nested.AllKeys()) > 0 {
		config = nested // an OpenTelemetryCollector resource
	}
	for _, kind := range kinds {
		table, err := config.Sub(kind)
		must.OK(t, err)
		for id := range table.ToStringMap() {
			name, _, _ := strings.Cut(id, "/")
			list = append(list, kind+"/"+strings.ReplaceAll(name, "_", ""))
		}
	}
	if len(list) == 0 {
		t.Fatalf("%s has no component", file)
	}
	return list
}

// load reads the first document of a YAML file.
func load(t *testing.T, file string) *confmap.Conf {
	t.Helper()
	text, err := os.ReadFile(file)
	must.OK(t, err)
	first, _, _ := strings.Cut(string(text), "\n---\n")
	retrieved, err := confmap.NewRetrievedFromYAML([]byte(first))
	must.OK(t, err)
	config, err := retrieved.AsConf()
	must.OK(t, err)
	return config
}
