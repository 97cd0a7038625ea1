// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

var categoryNames = [ringbuf.Categories]string{
	ringbuf.CategoryMemory:      semconv.CategoryMemory,
	ringbuf.CategoryTransfer:    semconv.CategoryTransfer,
	ringbuf.CategoryConnection:  semconv.CategoryConnection,
	ringbuf.CategoryBackend:     semconv.CategoryBackend,
	ringbuf.CategoryError:       semconv.CategoryError,
	ringbuf.CategoryPerformance: semconv.CategoryPerformance,
	ringbuf.CategorySystem:      semconv.CategorySystem,
	ringbuf.CategoryCustom:      semconv.CategoryCustom,
}

// CategoryName returns the catalog's name of a ring's category.
func CategoryName(c ringbuf.Category) string {
	if knownCategory(c) == noCategory {
		return semconv.CategoryUnknown
	}
	return categoryNames[c]
}

// TypeCategory returns the catalog's name of the category of a known type.
func TypeCategory(t ringbuf.Type) string {
	if t == ringbuf.TypeEventsDropped {
		return semconv.CategoryTelemetry
	}
	return CategoryName(t.Category())
}

// noCategory replaces all numbers that aren't in the catalog.
const noCategory ringbuf.Category = -1

func knownCategory(c ringbuf.Category) ringbuf.Category {
	if c < 0 || c >= ringbuf.Categories {
		return noCategory
	}
	return c
}

// valued reports whether nixl.event.value includes the values of a category's events,
// because no other metric does.
func valued(c ringbuf.Category) bool {
	switch c {
	case ringbuf.CategoryConnection, ringbuf.CategoryBackend, ringbuf.CategorySystem, ringbuf.CategoryCustom:
		return true
	default:
		return false
	}
}
