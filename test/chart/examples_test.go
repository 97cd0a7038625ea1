// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
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
			for _, at := range enabled.FindAllIndex(text, -1) {
				if !bytes.Contains(text[at[0]:at[1]], []byte("NIXL_TELEMETRY_EXPORTER")) {
					t.Errorf("%s enables telemetry but doesn't set the exporter nearby:\n%s", file, text[at[0]:at[1]])
				}
			}
		}
	}
}

// enabled matches lines that enable telemetry, except in tables, with the line before them and the two lines after them.
var enabled = regexp.MustCompile(`(?m)^.*\n(?:[^|\n].*)?NIXL_TELEMETRY_ENABLE[=: ",value]*y.*(?:\n.*){0,2}`)

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
