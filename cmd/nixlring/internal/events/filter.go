// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// unknown is the name of categories that NIXL doesn't define.
const unknown = "UNKNOWN"

// Filter selects events. The zero Filter selects all events.
type Filter struct {
	categories []string
	names      []string // patterns
}

// Categories returns the categories that a filter accepts.
func Categories() (names []string) {
	for c := range ringbuf.Category(ringbuf.Categories) {
		names = append(names, c.String())
	}
	return append(names, unknown, strings.ToUpper(semconv.CategoryTelemetry))
}

// NewFilter returns a filter that selects events with one of the categories and with a name
// that matches one of the patterns. Categories are those of NIXL or of the metrics, in any
// case. Patterns are those of [path.Match]. An empty list matches all events.
func NewFilter(categories, names []string) (*Filter, error) {
	f := &Filter{names: names}
	for _, c := range categories {
		c = strings.ToUpper(strings.TrimSpace(c))
		if !slices.Contains(Categories(), c) {
			return nil, fmt.Errorf("unknown category %q: must be one of %s", c, strings.Join(Categories(), ", "))
		}
		f.categories = append(f.categories, c)
	}
	for _, name := range names {
		if _, err := path.Match(name, ""); err != nil {
			return nil, fmt.Errorf("name %q: %w", name, err)
		}
	}
	return f, nil
}

// match reports whether the filter selects an event.
func (f *Filter) match(e *event) bool {
	either := func(c string) bool { return c == e.Category.String() || strings.EqualFold(c, e.metric) }
	if len(f.categories) > 0 && !slices.ContainsFunc(f.categories, either) {
		return false
	}
	return len(f.names) == 0 || slices.ContainsFunc(f.names, func(pattern string) bool {
		ok, _ := path.Match(pattern, e.Name)
		return ok
	})
}
