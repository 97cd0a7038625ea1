// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

const examples = "../../examples/"

// example returns the documents of a file, by kind.
func example(t *testing.T, name string) map[string][]byte {
	t.Helper()
	file, err := os.Open(examples + name)
	must.OK(t, err)
	defer file.Close()
	list, err := documents(file)
	must.OK(t, err)
	byKind := make(map[string][]byte)
	for _, text := range list {
		var meta metav1.TypeMeta
		must.OK(t, yaml.Unmarshal([]byte(text), &meta))
		byKind[meta.Kind] = []byte(text)
	}
	return byKind
}

func mustDecode[T any](t *testing.T, text []byte) *T {
	t.Helper()
	object, err := decode[T](text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return object
}

// Every file that enables telemetry must also set the exporter.
func TestEveryDocumentedSetupNamesTheExporter(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{
		"README.md", "docs/*.md", "deploy/systemd/*", "examples/*/*.yaml", "deploy/helm/nixl-otel/templates/*",
		"receiver/nixlshmreceiver/README.md",
	} {
		files, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, error %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			must.OK(t, err)
			for line, enabled := range lines(string(text)) {
				if enabled && !strings.Contains(near(string(text), line), "NIXL_TELEMETRY_EXPORTER") {
					t.Errorf("%s:%d enables telemetry but doesn't set the exporter", file, line+1)
				}
			}
		}
	}
}

// lines reports which lines enable telemetry.
func lines(text string) map[int]bool {
	enabled := make(map[int]bool)
	for i, line := range strings.Split(text, "\n") {
		_, after, found := strings.Cut(line, "NIXL_TELEMETRY_ENABLE")
		after = strings.TrimLeft(after, "=: \",value")
		enabled[i] = found && strings.HasPrefix(after, "y") && !strings.HasPrefix(strings.TrimSpace(line), "|")
	}
	return enabled
}

// near returns a line with the line before it and the two lines after it.
func near(text string, line int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, line-1):min(len(all), line+3)], "\n")
}

// yamlBlocks returns the YAML code blocks of a document that begin with prefix.
func yamlBlocks(t *testing.T, file, prefix string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	must.OK(t, err)
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		if block, _, _ = strings.Cut(block, "```"); strings.HasPrefix(block, prefix) {
			list = append(list, block)
		}
	}
	if len(list) == 0 {
		t.Fatal(fmt.Errorf("%s has no block that begins with %q", file, prefix))
	}
	return list
}
