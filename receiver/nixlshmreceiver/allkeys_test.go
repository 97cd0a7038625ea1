// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// allKeys returns the text of all-keys.yaml and the configuration of its receiver. If
// commented is true, it includes the keys that are commented out.
func allKeys(t *testing.T, commented bool) (text string, section *confmap.Conf) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "examples", "collector", "all-keys.yaml"))
	must.OK(t, err)
	// Expand environment variables to their defaults.
	text = regexp.MustCompile(`\$\{env:\w+:-([^}]*)\}`).ReplaceAllString(string(content), "$1")
	if commented {
		text = regexp.MustCompile(`(?m)^( +)# (\w+: [^ ].*)`).ReplaceAllString(text, "$1$2")
	}
	read, err := confmap.NewRetrievedFromYAML([]byte(text))
	must.OK(t, err)
	all, err := read.AsConf()
	must.OK(t, err)
	if section, err = all.Sub("receivers::nixl_shm"); err != nil {
		t.Fatal(err)
	}
	return text, section
}

func TestAllKeysHaveTheirDefaults(t *testing.T) {
	_, section := allKeys(t, false)
	got := createDefaultConfig()
	must.OK(t, section.Unmarshal(got))
	if err := confmap.Validate(got); err != nil {
		t.Error(err)
	}
	want := createDefaultConfig()
	want.Directories = []string{"/tmp"}
	want.Exclude = []string{}
	want.Histograms.Duration.Bounds = semconv.TransferDuration.Bounds // the defaults, in place of none
	want.Histograms.Size.Bounds = semconv.TransferSize.Bounds
	want.Histograms.Throughput.Bounds = semconv.TransferThroughput.Bounds
	if d := same(want, got); d != "" {
		t.Errorf("(-defaults +all-keys.yaml)\n%s", d)
	}
}

func TestAllKeysHasEveryKey(t *testing.T) {
	_, section := allKeys(t, true)
	cfg := createDefaultConfig()
	must.OK(t, section.Unmarshal(cfg))
	if err := confmap.Validate(cfg); err != nil {
		t.Error(err)
	}
	var got []string
	for _, key := range section.AllKeys() {
		if attribute, filter, ok := strings.Cut(key, "::metrics_"); ok { // every attribute has these keys
			key = "resource_attributes::*::metrics_" + filter
			if !strings.HasPrefix(attribute, "resource_attributes::") {
				t.Errorf("%s isn't an attribute", attribute)
			}
		}
		for _, of := range []string{"discovery::processes::env_attributes", "resource"} { // the user chooses the keys of the map
			if strings.HasPrefix(key, of+"::") {
				key = of
			}
		}
		got = append(got, key)
	}
	for _, key := range leaves(reflect.TypeFor[Config](), "") {
		if attribute, filter, ok := strings.Cut(key, "::metrics_"); ok && strings.HasPrefix(attribute, "resource_attributes::") {
			key = "resource_attributes::*::metrics_" + filter
		}
		if !slices.Contains(got, key) {
			t.Errorf("all-keys.yaml has no %s", key)
		}
	}
}

// leaves returns the keys that have values, with the keys above them.
func leaves(of reflect.Type, above string) (keys []string) {
	for field := range of.Fields() {
		key, options, tagged := strings.Cut(field.Tag.Get("mapstructure"), ",")
		switch {
		case options == "squash":
			keys = append(keys, leaves(field.Type, above)...)
		case key == "" && !tagged:
		case field.Type.Kind() == reflect.Struct:
			keys = append(keys, leaves(field.Type, above+key+"::")...)
		case field.Type.Kind() == reflect.Pointer && field.Type.Elem().Kind() == reflect.Struct && field.Type != reflect.TypeFor[*component.ID]():
			keys = append(keys, leaves(field.Type.Elem(), above+key+"::")...)
		default:
			keys = append(keys, above+key)
		}
	}
	return keys
}

// A comment is on the line of its key or above it.
func TestAllKeysHaveComments(t *testing.T) {
	text, _ := allKeys(t, true)
	_, text, _ = strings.Cut(text, "  nixl_shm:\n")
	text, _, _ = strings.Cut(text, "\nexporters:")
	before := ""
	for line := range strings.Lines(text) {
		key, _, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if ok && !strings.HasPrefix(key, "#") && !strings.Contains(line, " # ") && !strings.HasPrefix(before, "# ") {
			t.Errorf("%s has no comment", key)
		}
		before = strings.TrimSpace(line)
	}
}
