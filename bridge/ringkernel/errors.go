package ringkernel

import (
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/errtype"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// maxErrorTypes bounds the error types of a kernel. Errors of further types
// count under otel.metric.overflow = true, with no type.
const maxErrorTypes = 32

// errorTotal is a kernel's errors, as snapshots have them. Errors are rare
// enough for locks.
type errorTotal struct {
	mu   sync.Mutex
	n    int64
	last error
}

// errorCounts counts the errors of an account's kernels by type.
type errorCounts struct {
	mu     sync.Mutex
	byType map[string]*errorCount
}

type errorCount struct {
	n     int64
	point metric.ObserveOption
}

// overflowType is the key of the types past the limit. No type has this name,
// as each is valid UTF-8.
const overflowType = "\xff"

func (c *errorCounts) add(p *points, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count(p, name).n++
}

func (c *errorCounts) count(p *points, name string) *errorCount {
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
	e := &errorCount{point: p.with(kind)}
	c.byType[name] = e
	return e
}

func (c *errorCounts) observe(o metric.Observer, counter metric.Int64Observable) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.byType {
		o.ObserveInt64(counter, e.n, e.point)
	}
}

func (t *errorTotal) add(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
	t.last = err
}

func (t *errorTotal) load() (n int64, last error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n, t.last
}

func (t *errorTotal) forgetLast() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = nil
}

// errorTypeOf is the value of error.type for err.
func (r *Runtime) errorTypeOf(err error) string {
	name := ""
	if r.errorType != nil {
		name = r.errorType(err)
	}
	if name == "" {
		name = errtype.Of(err)
	}
	// Exporters refuse a whole batch for one string that isn't UTF-8.
	return strings.ToValidUTF8(name, "\uFFFD")
}
