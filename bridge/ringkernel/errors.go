// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/errtype"
	"github.com/nixl-otel/nixl-otel/bridge/internal/nils"
	"github.com/nixl-otel/nixl-otel/bridge/internal/text"
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
	order  []*errorCount // by first error
}

type errorCount struct {
	n     int64
	point []metric.ObserveOption
}

// overflowType is the key of all types beyond the limit. It isn't valid UTF-8, so
// it can't be the name of a type.
const overflowType = "\xff"

func (c *errorCounts) add(p *points, name string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	c.last = err
	c.find(p, name).n++
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
	e := &errorCount{point: []metric.ObserveOption{p.kernel[0], metric.WithAttributeSet(attribute.NewSet(kind))}}
	c.byType[name] = e
	c.order = append(c.order, e)
	return e
}

// counts returns the counts of all types, always in the same order. Nobody observes them
// with the lock, because filters of the SDK are the program's code.
func (c *errorCounts) counts() []errorCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]errorCount, 0, len(c.order))
	for _, e := range c.order {
		all = append(all, *e)
	}
	return all
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
	if r.errorType != nil && !nils.Is(err) {
		name = r.errorType(err)
	}
	if name == "" {
		return errtype.Of(err)
	}
	return text.Valid(name)
}
