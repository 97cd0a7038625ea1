package ringkernel

import (
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// points are the attributes of a kernel's data points, made once: making a set
// takes longer than observing with it.
type points struct {
	attributes []attribute.KeyValue
	set        attribute.Set
	kernel     metric.ObserveOption
	record     []metric.RecordOption
	queues     [queues]metric.ObserveOption
	states     [states]metric.ObserveOption
}

func newPoints(common []attribute.KeyValue, id string) points {
	// Exporters refuse a whole batch for one string that isn't UTF-8.
	id = strings.ToValidUTF8(id, "\uFFFD")
	p := points{attributes: append(slices.Clip(common), attribute.String(semconv.KernelID, id))}
	p.set = attribute.NewSet(p.attributes...)
	p.kernel = metric.WithAttributeSet(p.set)
	p.record = []metric.RecordOption{metric.WithAttributeSet(p.set)}
	for q := range p.queues {
		p.queues[q] = p.with(attribute.String(semconv.QueueName, Queue(q).String()))
	}
	for s := range p.states {
		p.states[s] = p.with(attribute.String(semconv.KernelState, State(s).String()))
	}
	return p
}

// with is the kernel's attributes and one more.
func (p *points) with(kv attribute.KeyValue) metric.ObserveOption {
	return metric.WithAttributeSet(attribute.NewSet(append(slices.Clip(p.attributes), kv)...))
}
