// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"
)

// examples has values for keys whose type alone doesn't say what to write.
var examples = map[string]string{
	"discovery":                            "{processes: {}}",
	"discovery::processes":                 "{}",
	"discovery::kubelet":                   "{}",
	"discovery::processes::env_attributes": "{RANK: nixl.local_rank}",
	"resource":                             "{k8s.cluster.name: east}",
	"logs":                                 "{slow_transfer: 1s}",
	"histograms":                           "{duration: {kind: none}}",
	"histograms::duration":                 "{kind: none}",
	"histograms::size":                     "{kind: none}",
	"histograms::throughput":               "{kind: none}",
	"histograms::duration::bounds":         "seconds, such as 0.001",
	"histograms::size::bounds":             "bytes, such as 1024",
	"histograms::throughput::bounds":       "bytes per second, such as 1e9",
	"allowed_uids":                         "the numbers that id -u prints, such as 1000",
	"storage":                              "file_storage",
}

// explain says what is wrong with a configuration that the decoder has rejected, because the decoder's errors don't
// say what to write instead. It returns nil if it knows no more than the decoder.
func explain(conf *confmap.Conf) error {
	var errs faults
	errs.explain("", reflect.TypeFor[Config](), conf.ToStringMap())
	if resource, _ := conf.Get("resource").(map[string]any); len(errs) == 0 { // else they may be from the environment, as text
		for _, key := range slices.Sorted(maps.Keys(resource)) {
			if _, ok := resource[key].(string); !ok {
				errs.add("resource::%s: %v is not text: use quotes", key, resource[key])
			}
		}
	}
	return errors.Join(errs...)
}

// explain compares a value with the type of its key, and adds an error for each difference.
func (f *faults) explain(at string, t reflect.Type, value any) {
	t = decoded(t)
	wrong := func(what, example string) {
		if given, ok := examples[at]; ok {
			example = given
		}
		f.add("%s: %v is not %s: use %s", at, value, what, example)
	}
	text, isText := value.(string)
	number := reflect.ValueOf(value)
	switch named, isNamed := reflect.TypeAssert[encoding.TextUnmarshaler](reflect.New(t)); {
	case value == nil:
	case isNamed && isText:
		if err := named.UnmarshalText([]byte(text)); err != nil {
			f.add("%s: %w", at, err)
		}
	case isNamed:
		wrong("a name", "a name")
	case t == reflect.TypeFor[time.Duration]():
		if _, err := time.ParseDuration(text); isText && err != nil {
			wrong("a duration", "a number with a unit, such as 10s")
		}
	case t.Kind() == reflect.Struct:
		keys, ok := value.(map[string]any)
		if !ok {
			wrong("a map", fmt.Sprintf("{enabled: %t}", value == true))
			return
		}
		fields := fieldsOf(t)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			path := strings.TrimPrefix(at+"::"+key, "::")
			if of, ok := fields[key]; ok {
				f.explain(path, of, keys[key])
			} else {
				f.add("%s: there is no such key: use %s", path, alternatives(key, fields))
			}
		}
	case t.Kind() == reflect.Map:
		if _, ok := value.(map[string]any); !ok {
			wrong("a map", "{KEY: VALUE}")
		}
	case t.Kind() == reflect.Slice:
		list, ok := value.([]any)
		if !ok {
			list = []any{value} // the decoder does the same for text
		}
		for _, one := range list {
			f.explain(at, t.Elem(), one)
		}
	case t.Kind() == reflect.Bool:
		if _, ok := value.(bool); !ok {
			wrong("a boolean", "true or false")
		}
	case t.Kind() == reflect.Int64, t.Kind() == reflect.Float64:
		if !number.CanInt() && !number.CanUint() && !number.CanFloat() {
			wrong("a number", "a number")
		}
	}
}

// decoded returns the type to which the decoder assigns a value.
func decoded(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	if get, ok := reflect.PointerTo(t).MethodByName("Get"); ok && strings.HasPrefix(t.Name(), "Optional[") {
		return get.Type.Out(0).Elem()
	}
	return t
}

// fieldsOf returns the types of the keys of a struct.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := make(map[string]reflect.Type)
	for field := range t.Fields() {
		switch name, options, _ := strings.Cut(field.Tag.Get("mapstructure"), ","); {
		case options == "squash":
			maps.Copy(fields, fieldsOf(field.Type))
		case name != "" && name != "-":
			fields[name] = field.Type
		}
	}
	return fields
}

// alternatives returns the keys, anywhere in the configuration, that resemble one that doesn't exist, or else the keys
// in its place.
func alternatives(key string, here map[string]reflect.Type) string {
	var alike []string
	for path := range paths("", reflect.TypeFor[Config]()) {
		if strings.HasPrefix(path, "metrics::") || strings.HasPrefix(path, "resource_attributes::") {
			continue
		}
		last := path[strings.LastIndex(path, ":")+1:]
		same := 0
		for same < min(len(last), len(key)) && last[same] == key[same] {
			same++
		}
		if strings.Contains(last, key) || same >= 3 && 2*same > len(key) {
			alike = append(alike, path)
		}
	}
	slices.Sort(alike)
	all := slices.Sorted(maps.Keys(here))
	switch {
	case len(alike) > 0 && len(alike) <= 3:
		return strings.Join(alike, " or ")
	case len(all) > 20:
		return "one that documentation.md lists"
	default:
		return "one of " + strings.Join(all, ", ")
	}
}

// paths yields the paths of all keys below a type.
func paths(at string, t reflect.Type) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if t = decoded(t); t.Kind() != reflect.Struct {
			return
		}
		for key, of := range fieldsOf(t) {
			path := strings.TrimPrefix(at+"::"+key, "::")
			if !yield(path) {
				return
			}
			paths(path, of)(yield)
		}
	}
}
