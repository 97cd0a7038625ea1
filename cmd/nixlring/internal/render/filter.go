// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// unknown is what a category prints as that NIXL doesn't have.
const unknown = "UNKNOWN"

// Filter lets some events through. The zero Filter lets all.
type Filter struct {
	categories []string
	name       *regexp.Regexp
}

// Categories are the names that a filter takes.
func Categories() (names []string) {
	for c := range ringbuf.Category(ringbuf.Categories) {
		names = append(names, c.String())
	}
	return append(names, unknown, strings.ToUpper(semconv.CategoryTelemetry))
}

// NewFilter lets events through that are of one of some categories, in any
// case of letters, be it NIXL's or the metrics', and whose name matches one of some patterns, in which *
// stands for anything and ? for any character. An empty list asks for nothing.
func NewFilter(categories, names []string) (*Filter, error) {
	f := &Filter{}
	for _, c := range categories {
		c = strings.ToUpper(strings.TrimSpace(c))
		if !slices.Contains(Categories(), c) {
			return nil, fmt.Errorf("unknown category %q: it is one of %s", c, strings.Join(Categories(), ", "))
		}
		f.categories = append(f.categories, c)
	}
	if len(names) == 0 {
		return f, nil
	}
	var patterns []string
	for _, name := range names {
		p := regexp.QuoteMeta(name)
		p = strings.ReplaceAll(p, `\*`, ".*")
		patterns = append(patterns, strings.ReplaceAll(p, `\?`, "."))
	}
	// QuoteMeta leaves nothing that could be wrong, but for bytes that are no
	// text, which no pattern can ask for.
	re, err := regexp.Compile("(?s)^(?:" + strings.Join(patterns, "|") + ")$")
	if err != nil {
		return nil, fmt.Errorf("names %q: %w", names, err)
	}
	f.name = re
	return f, nil
}

// Match says whether the filter lets an event through.
func (f *Filter) Match(e *Event) bool {
	either := func(c string) bool { return c == e.Category.String() || strings.EqualFold(c, e.Metric) }
	if len(f.categories) > 0 && !slices.ContainsFunc(f.categories, either) {
		return false
	}
	return f.name == nil || f.name.MatchString(e.Name)
}
