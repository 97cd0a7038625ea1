// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package semconv_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/semconv"
)

func metrics() []semconv.Metric {
	return slices.Concat(semconv.NIXL(), semconv.RingKernel(), semconv.SplitInference())
}

func attributes() []semconv.Attribute {
	return slices.Concat(semconv.ResourceAttributes(), semconv.NIXLAttributes(), semconv.RingKernelAttributes(),
		semconv.SplitInferenceAttributes(), semconv.SharedAttributes())
}

// OpenTelemetry's policies forbid that an attribute is also the namespace of another
// attribute, and the same for metrics and for events. An attribute and a metric may
// share a name.
func TestNamesAreNotNamespacesOfOthers(t *testing.T) {
	var names []string
	for _, a := range attributes() {
		names = append(names, "attribute "+a.Key)
	}
	for _, m := range metrics() {
		names = append(names, "metric "+m.Name)
	}
	for _, e := range semconv.NIXLEvents() {
		names = append(names, "event "+e.Name)
	}
	for _, name := range names {
		for _, other := range names {
			if strings.HasPrefix(other, name+".") {
				t.Errorf("%s is also the namespace of %s", name, other)
			}
		}
	}
}

func TestEveryAttributeIsUsedAndItsPresenceStated(t *testing.T) {
	described := make(map[string]semconv.Attribute)
	for _, a := range attributes() {
		if _, twice := described[a.Key]; twice {
			t.Errorf("%s is described twice", a.Key)
		}
		described[a.Key] = a
		if len(a.Examples)+len(a.Values) == 0 && !a.OpenTelemetry {
			t.Errorf("%s has neither examples nor values", a.Key)
		}
	}
	used := make(map[string]bool)
	for _, a := range semconv.ResourceAttributes() {
		used[a.Key] = true
	}
	check := func(name string, required, conditional []string) {
		for _, key := range slices.Concat(required, conditional) {
			used[key] = true
			a, ok := described[key]
			if !ok {
				t.Errorf("%s has the attribute %s, which isn't described", name, key)
			}
			if slices.Contains(conditional, key) && a.Condition == "" && !a.OptIn {
				t.Errorf("nothing states when %s has the attribute %s", name, key)
			}
		}
	}
	for _, m := range metrics() {
		check(m.Name, m.Attributes, m.Conditional)
	}
	for _, e := range semconv.NIXLEvents() {
		check(e.Name, e.Attributes, e.Conditional)
	}
	for key := range described {
		if !used[key] {
			t.Errorf("no metric or event has the attribute %s", key)
		}
	}
}
