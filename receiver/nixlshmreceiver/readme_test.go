// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
)

// inWords are the defaults that README.md describes in words, because they depend on
// something.
var inWords = map[string]string{
	"directories":                          "none",
	"discovery::processes::env_attributes": "{LOCAL_RANK: nixl.local_rank}",
	"resource":                             "none",
	"allowed_uids":                         "all",
	"storage":                              "none",
	"metrics::*::enabled":                  "see [documentation.md](./documentation.md)",
	"histograms::duration::bounds":         "see [Buckets](../../docs/metrics.md#buckets)",
	"histograms::size::bounds":             "see [Buckets](../../docs/metrics.md#buckets)",
	"histograms::throughput::bounds":       "see [Buckets](../../docs/metrics.md#buckets)",
	"resource_attributes::*::enabled":      "see [documentation.md](./documentation.md)",
}

func TestREADMEHasEveryKeyWithItsDefault(t *testing.T) {
	text, err := os.ReadFile("README.md")
	must.OK(t, err)
	documented := documentedDefaults(string(text))
	defaults := make(map[string]string)
	cfg := createDefaultConfig()
	cfg.Discovery = DiscoveryConfig{Processes: defaultProcesses(), Kubelet: defaultKubelet()}
	spellAll(reflect.ValueOf(*cfg), "", defaults)
	for key, want := range defaults {
		if words, ok := inWords[key]; ok {
			want = words
		}
		if got, ok := documented[key]; !ok || got != want {
			t.Errorf("%s: README.md has the default %q (%v), want %q", key, got, ok, want)
		}
		delete(documented, key)
	}
	for key := range documented {
		t.Errorf("%s is in README.md, but isn't a key", key)
	}
}

// documentedDefaults returns the keys and defaults of README.md's table of the
// configuration, without backquotes. A key that begins with an ellipsis belongs to the
// keys above it.
func documentedDefaults(text string) map[string]string {
	_, table, _ := strings.Cut(text, "| key | default | |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	code := regexp.MustCompile("`([^`]+)`")
	found := make(map[string]string)
	var above []string
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")[1:]
		var keys []string
		for _, match := range code.FindAllStringSubmatch(cells[0], -1) {
			keys = append(keys, strings.ReplaceAll(match[1], "<name>", "*"))
		}
		if last, ok := strings.CutPrefix(keys[0], "…"); ok {
			keys = keys[:0]
			for _, key := range above {
				keys = append(keys, key+last)
			}
		} else {
			above = keys
		}
		value := strings.TrimSpace(cells[1])
		if value == "" { // a section, whose keys follow
			continue
		}
		if match := code.FindString(value); match == value {
			value = strings.Trim(value, "`")
		}
		for _, key := range keys {
			found[key] = value
		}
	}
	return found
}

// spellAll adds the default of each key, formatted as in YAML.
func spellAll(of reflect.Value, above string, to map[string]string) {
	for i := range of.NumField() {
		field, value := of.Type().Field(i), of.Field(i)
		key, options, tagged := strings.Cut(field.Tag.Get("mapstructure"), ",")
		switch {
		case options == "squash":
			spellAll(value, above, to)
		case !tagged && key == "":
		case field.Type == reflect.TypeFor[metadata.MetricsConfig](), field.Type == reflect.TypeFor[metadata.ResourceAttributesConfig]():
			to[above+key+"::*::enabled"] = spellSwitches(value)
		case value.Kind() == reflect.Struct:
			spellAll(value, above+key+"::", to)
		case value.Kind() == reflect.Pointer && value.Elem().Kind() == reflect.Struct:
			spellAll(value.Elem(), above+key+"::", to)
		default:
			to[above+key] = spellDefault(value.Interface())
		}
	}
}

// spellSwitches returns the default of enabled, or both values if attributes differ.
func spellSwitches(of reflect.Value) string {
	var all []string
	for _, metric := range of.Fields() {
		all = append(all, strconv.FormatBool(metric.FieldByName("Enabled").Bool()))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " or ")
}

func spellDefault(value any) string {
	switch v := value.(type) {
	case time.Duration:
		return regexp.MustCompile(`(\D)0s$`).ReplaceAllString(v.String(), "$1")
	case []string:
		list, err := json.Marshal(append([]string{}, v...))
		if err != nil {
			return err.Error()
		}
		return string(list)
	case map[string]string:
		text, err := json.Marshal(v)
		if err != nil {
			return err.Error()
		}
		return string(text)
	case *component.ID:
		return "null"
	default:
		return fmt.Sprint(v)
	}
}
