package bridge

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

// errorCounts counts a kernel's errors by type. Errors are rare enough for a
// lock.
type errorCounts struct {
	mu     sync.Mutex
	total  int64
	last   error
	byType map[string]*errorCount
}

type errorCount struct {
	n     int64
	point metric.ObserveOption
}

// overflowType is the key of the types past the limit. No type has this name,
// as each is valid UTF-8.
const overflowType = "\xff"

func (c *errorCounts) add(k *Kernel, err error) {
	name := k.runtime.errorTypeOf(err) // outside the lock: it may be anyone's code
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total++
	c.last = err
	c.count(k, name).n++
}

func (c *errorCounts) count(k *Kernel, name string) *errorCount {
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
	e := &errorCount{point: k.points.with(kind)}
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

func (c *errorCounts) load() (total int64, last error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total, c.last
}

func (c *errorCounts) forgetLast() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = nil
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
