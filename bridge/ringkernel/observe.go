package ringkernel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// observe is the callback of a Runtime's own instruments: it runs once for each
// reader's collection. The counters are the ledger's.
func (r *Runtime) observe(_ context.Context, o metric.Observer) error {
	now := r.now()
	for _, k := range r.registry.Load().live {
		k.observeGauges(o, &r.instruments, now)
	}
	return nil
}

func (k *Kernel) observeGauges(o metric.Observer, i *instruments, now time.Time) {
	t := k.telemetry(now)
	for s, point := range k.points.states {
		var in int64
		if t.State == State(s) {
			in = 1
		}
		o.ObserveInt64(i.status, in, point)
	}
	for q := range k.queues {
		size, capacity := k.queues[q].read()
		if size.known {
			o.ObserveInt64(i.queueSize, size.messages, k.points.queues[q])
		}
		if capacity.known {
			o.ObserveInt64(i.queueCapacity, capacity.messages, k.points.queues[q])
		}
	}
	o.ObserveFloat64(i.uptime, t.Uptime().Seconds(), k.points.kernel)
	if !t.LastMessageTime.IsZero() {
		o.ObserveFloat64(i.lastMessage, epochSeconds(t.LastMessageTime), k.points.kernel)
	}
	if i.throughput != nil {
		o.ObserveFloat64(i.throughput, t.Throughput(), k.points.kernel)
		o.ObserveFloat64(i.errorRate, t.ErrorRate(), k.points.kernel)
	}
}

// epochSeconds is a time in seconds since the epoch.
func epochSeconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
