// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package parity

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// object is an object of OTLP in JSON.
type object = map[string]any

// normalize returns the metrics of a batch with all OTLP fields, by name. Each point has the name
// of its agent instead of the resource, and no times. It omits metrics whose names have one of some
// prefixes, and nixl.agent.up: an agent that reports itself doesn't export it, and for a
// ring the value depends on the time of the check.
func normalize(t *testing.T, batch pmetric.Metrics, omit ...string) map[string]object {
	t.Helper()
	omit = append(omit, semconv.AgentUp.Name)
	all := make(map[string]object)
	for _, rm := range batch.ResourceMetrics().All() {
		if _, ok := rm.Resource().Attributes().Get(semconv.AgentName); !ok {
			t.Error("a resource without the agent's name")
		}
	}
	text, err := new(pmetric.JSONMarshaler).MarshalMetrics(batch)
	must.OK(t, err)
	var data object
	must.OK(t, json.Unmarshal(text, &data))
	for _, rm := range list(data, "resourceMetrics") {
		resource, _ := rm["resource"].(object)
		for _, sm := range list(rm, "scopeMetrics") {
			for _, m := range list(sm, "metrics") {
				name, _ := m["name"].(string)
				if slices.ContainsFunc(omit, func(p string) bool { return strings.HasPrefix(name, p) }) {
					continue
				}
				m["scope"], m["schemaUrl"] = sm["scope"], sm["schemaUrl"]
				for _, kind := range []string{"sum", "gauge", "histogram", "exponentialHistogram"} {
					if data, ok := m[kind].(object); ok {
						data["dataPoints"] = points(list(data, "dataPoints"), list(resource, "attributes"))
					}
				}
				all[name] = m
			}
		}
	}
	return all
}

// list returns a list in an object.
func list(o object, key string) (all []object) {
	values, _ := o[key].([]any)
	for _, v := range values {
		if one, ok := v.(object); ok {
			all = append(all, one)
		}
	}
	return all
}

// points returns points by their attributes.
func points(dataPoints, resource []object) object {
	all := make(object)
	for _, dp := range dataPoints {
		var attributes []string
		for _, a := range append(list(dp, "attributes"), resource...) {
			if key, _ := a["key"].(string); key == semconv.AgentName || !slices.ContainsFunc(resource, func(r object) bool { return r["key"] == key }) {
				attributes = append(attributes, fmt.Sprint(a))
			}
		}
		slices.Sort(attributes)
		start, at := number(dp["startTimeUnixNano"]), number(dp["timeUnixNano"])
		dp["startTimeUnixNano"], dp["timeUnixNano"] = start != 0, start <= at
		// The receiver adds integers and divides once, and the SDK adds floating-point numbers.
		if sum, ok := dp["sum"].(float64); ok {
			dp["sum"] = fmt.Sprintf("%.9g", sum)
		}
		delete(dp, "attributes")
		all[strings.Join(slices.Compact(attributes), ",")] = dp
	}
	return all
}

// number returns a 64-bit integer, which JSON has as text.
func number(v any) (n int64) {
	text, _ := v.(string)
	n, _ = strconv.ParseInt(text, 10, 64)
	return n
}

// equal fails the test if two batches differ.
func equal(t *testing.T, want, got map[string]object) {
	t.Helper()
	if len(want) == 0 {
		t.Error("nothing was exported")
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("metrics differ (-receiver +bridge):\n%s", d)
	}
}
