// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/bridge/internal/errtype"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// maxErrorTypes limits the error types of a kernel. Errors of further types
// count under otel.metric.overflow = true, without a type.
const maxErrorTypes = 32

// errorCounts counts a kernel's errors by type. It uses a lock, because errors are
// rare.
type errorCounts struct {
	mu     sync.Mutex
	n      int64
	last   error // since the last reset
	byType map[string]*errorCount
}

type errorCount struct {
	n        int64
	set      attribute.Set
	exemplar slot
}

// overflowType is the key of all types beyond the limit. It isn't valid UTF-8, so
// it can't be the name of a type.
const overflowType = "\xff"

// add counts an error, and returns the slot for its exemplar.
func (c *errorCounts) add(p *points, name string, err error) *slot {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	c.last = err
	e := c.find(p, name)
	e.n++
	return &e.exemplar
}

func (c *errorCounts) find(p *points, name string) *errorCount {
	if e, ok := c.byType[name]; ok {
		return e
	}
	if c.byType == nil {
		c.byType = make(map[string]*errorCount)
	}
	kind := attribute.String(semconv.ErrorType, name)
	if len(c.byType) >= maxErrorTypes && name != overflowType {
		if e, ok := c.byType[overflowType]; ok {
			return e
		}
		name, kind = overflowType, attribute.Bool(semconv.MetricOverflow, true)
	}
	e := &errorCount{set: p.with(kind)}
	c.byType[name] = e
	return e
}

// each calls a function with the count of each type.
func (c *errorCounts) each(f func(*errorCount)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.byType {
		f(e)
	}
}

func (c *errorCounts) load() (n int64, last error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n, c.last
}

func (c *errorCounts) forgetLast() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = nil
}

// errorTypeOf returns the value of error.type for err.
func (r *Runtime) errorTypeOf(err error) string {
	name := ""
	if r.errorType != nil {
		name = r.errorType(err)
	}
	if name == "" {
		name = errtype.Of(err)
	}
	// Exporters reject the whole batch if one string isn't valid UTF-8.
	return strings.ToValidUTF8(name, "\uFFFD")
}
