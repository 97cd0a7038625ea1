package agent

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/ledger"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// account is what agents count that have the same attributes, those of one
// name, one after another or several at a time.
type account struct {
	set    attribute.Set
	points points
	named  namedEvents
	past   totals   // of agents that are closed
	agents []*Agent // the others, the newest last
}

// maxClosedAgents bounds the memory for agents that come and go under ever new
// names, at 9 KB each. Their series end when newer ones push them out.
const maxClosedAgents = 200

var ledgers = ledger.Ledgers[instruments, *account]{Scope: ScopeName, Most: maxClosedAgents}

// enter gives a new agent its account.
func (a *Agent) enter(attributes []attribute.KeyValue) {
	set := attribute.NewSet(slices.Clone(attributes)...)
	create := func() *account {
		c := &account{set: set, points: newPoints(attributes)}
		c.named.points = &c.points
		return c
	}
	a.ledger.Join(set, create, func(c *account) {
		c.agents = append(c.agents, a)
		a.account, a.points = c, c.points
	})
}

// leave takes the agent out of its account, which keeps what it counted.
func (a *Agent) leave() {
	a.closed.Store(true)
	a.ledger.Leave(a.account, func(c *account) {
		c.agents = slices.DeleteFunc(c.agents, func(o *Agent) bool { return o == a })
		t := a.totals()
		c.past.add(&t)
		if !c.InUse() {
			c.named.forgetLast()
		}
	})
}

func (c *account) Key() attribute.Distinct { return c.set.Equivalent() }

func (c *account) InUse() bool { return len(c.agents) > 0 }

func (c *account) Empty() bool { return c.past == (totals{}) && c.named.empty() }

// Observe reports what was counted, and the last values of agents that aren't
// closed. What never occurred isn't reported, but for such agents' errors and
// drops, so that an alert can fire on the first.
func (c *account) Observe(o metric.Observer, i *instruments) {
	var present totals
	for _, a := range c.agents {
		t := a.totals()
		present.add(&t)
		a.observeLast(o, &t)
	}
	all := c.past
	all.add(&present)
	c.observeTransfers(o, i, &all)
	c.observeMemory(o, i, &all, present.memory[register].sum-present.memory[deregister].sum)
	for s, n := range all.errors {
		if n > 0 || c.InUse() {
			o.ObserveInt64(i.errors, n, c.points.errors[s])
		}
		c.observeEvents(o, i, ringbuf.TypeErrNotPosted+ringbuf.Type(s), n)
	}
	if all.dropped.events > 0 || c.InUse() {
		o.ObserveInt64(i.dropped, all.dropped.sum, c.points.agent)
	}
	c.observeEvents(o, i, ringbuf.TypeEventsDropped, all.dropped.events)
	c.named.observe(o, i)
}

func (c *account) observeTransfers(o metric.Observer, i *instruments, t *totals) {
	var all int64
	for d, n := range t.transfers {
		if n == 0 {
			continue
		}
		all += n
		o.ObserveInt64(i.io, t.bytes[d], c.points.direction[d])
		o.ObserveInt64(i.requests, n, c.points.direction[d])
		c.observeEvents(o, i, ringbuf.TypeTxBytes+ringbuf.Type(d), n)
		c.observeEvents(o, i, ringbuf.TypeTxRequests+ringbuf.Type(d), n)
	}
	c.observeEvents(o, i, ringbuf.TypeXferTime, all)
	c.observeEvents(o, i, ringbuf.TypeXferPostTime, all)
}

// observeMemory has the usage of agents that aren't closed: the memory of the
// others went with them.
func (c *account) observeMemory(o metric.Observer, i *instruments, t *totals, usage int64) {
	for op, counter := range [memoryOperations]metric.Int64ObservableCounter{i.registered, i.deregistered} {
		if m := t.memory[op]; m.events > 0 {
			o.ObserveInt64(counter, m.sum, c.points.agent)
			c.observeEvents(o, i, ringbuf.TypeMemoryRegistered+ringbuf.Type(op), m.events)
		}
	}
	if t.memory[register].events+t.memory[deregister].events > 0 {
		o.ObserveInt64(i.usage, usage, c.points.agent)
	}
}

func (c *account) observeEvents(o metric.Observer, i *instruments, t ringbuf.Type, n int64) {
	if n > 0 {
		o.ObserveInt64(i.events, n, c.points.events[t])
	}
}
