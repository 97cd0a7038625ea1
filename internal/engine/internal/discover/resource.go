// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Resource has the attributes that all agents have. An agent can't set them itself. Those with
// an empty value, such as that of a variable that isn't set, aren't added.
type Resource map[string]string

// wrongKey returns why the configuration can't add an attribute to agents, or "". Of the
// attributes that the receiver itself sets, it can add those that are allowed.
func wrongKey(key string, allowed ...string) string {
	switch {
	case process.IsOwn(key) && !slices.Contains(allowed, key):
		return fmt.Sprintf("%q: the receiver itself sets an attribute with the Prometheus label %s: remove it, or use another name", key, process.Label(key))
	case !utf8.ValidString(key) || len(key) > process.MaxAttribute || !process.Labelable(key):
		return fmt.Sprintf("Prometheus can't carry the attribute %q as a label: use another name, such as k8s.cluster.name", key)
	}
	return ""
}

// Check reports the invalid attributes, and those that an environment variable also sets. Each
// error starts with the key of the receiver's configuration.
func (r Resource) Check(env map[string]string) error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("resource: "+format, args...)) }
	variables, keys := make(map[string]string), make(map[string]string) // by label
	for _, name := range slices.Sorted(maps.Keys(env)) {
		variables[process.Label(env[name])] = name
	}
	used := 0
	for _, key := range slices.Sorted(maps.Keys(r)) {
		value, label := r[key], process.Label(key)
		used += len(key) + len(value)
		wrong := wrongKey(key, semconv.K8SContainerName)
		switch {
		case wrong != "":
			fault("%s", wrong)
		case keys[label] != "":
			fault("%s and %s are the same label in Prometheus: keep one of them", keys[label], key)
		case variables[label] != "":
			fault("%s: %s in discovery::processes::env_attributes also sets this attribute: keep one of them", key, variables[label])
		case !utf8.ValidString(value) || len(value) > process.MaxAttribute:
			fault("%s: the value %.40q must be UTF-8 of at most %d bytes", key, value, process.MaxAttribute)
		}
		keys[label] = key
	}
	if len(r) > process.MaxAttributes || used > process.MaxAttributeBytes {
		fault("%d attributes with %d bytes are too many: use at most %d attributes with %d bytes", len(r), used, process.MaxAttributes, process.MaxAttributeBytes)
	}
	return errors.Join(errs...)
}

// describe adds the attributes to an agent. What is known about the agent takes precedence.
func (r Resource) describe(a drain.Agent) drain.Agent {
	if len(r) == 0 {
		return a
	}
	all := make([]attribute.KeyValue, 0, len(r)+a.Resource.Len())
	for key, value := range r {
		if value != "" {
			all = append(all, attribute.String(key, value))
		}
	}
	a.Resource = attribute.NewSet(append(all, a.Resource.ToSlice()...)...)
	return a
}
