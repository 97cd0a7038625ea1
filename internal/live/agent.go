// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Identify returns what is known about an agent, without totals.
func Identify(a *engine.Agent) Agent {
	one := Agent{ID: a.ID, Name: a.Name, Path: a.Path, Attributes: make(map[string]string)}
	one.describe(a.Process)
	one.describe(a.Resource)
	return one
}

func (a *Agent) describe(set attribute.Set) {
	for it := set.Iter(); it.Next(); {
		kv := it.Attribute()
		a.Attributes[string(kv.Key)] = kv.Value.String()
	}
}

// NewAgent returns the state of an agent.
func NewAgent(s *engine.Snapshot) Agent {
	a := Identify(&s.Agent)
	a.describe(s.Stream)
	a.Layout, a.Store, a.Start = s.LayoutName(), s.Store, s.Start
	if s.Up != engine.UpUnknown {
		up := s.Up == engine.UpYes
		a.Up = &up
	}
	if !a.Store {
		a.Ring = newRing(s.Totals)
	}
	a.Totals = newTotals(s.Totals)
	return a
}

func newRing(t *tally.Totals) *Ring {
	return &Ring{
		Capacity: t.Capacity(), Peak: int(t.Utilization()*float64(max(t.Capacity()-1, 0)) + 0.5),
		Saturations: t.Saturations(), Restarts: t.Restarts(),
		TornGroups: t.TornGroups(), ForeignReads: t.ForeignReads(), Misses: t.Misses(),
	}
}

func newTotals(from *tally.Totals) *Totals {
	t := &Totals{
		Transmitted:   from.Size(tally.Transmit).Total().Lo,
		Received:      from.Size(tally.Receive).Total().Lo,
		Transfers:     from.Requests(tally.Transmit).Sum.Lo + from.Requests(tally.Receive).Sum.Lo,
		Busy:          from.Duration().Total().Lo,
		Post:          from.PostDuration().Total().Lo,
		Errors:        errorsOf(from),
		Dropped:       from.Dropped().Sum.Lo,
		Durations:     newHistogram(from.Duration()),
		PostDurations: newHistogram(from.PostDuration()),
		Throughput:    newHistogram(from.Throughput(tally.Transmit), from.Throughput(tally.Receive)),
		Sizes:         newHistogram(from.Size(tally.Transmit), from.Size(tally.Receive)),
	}
	if memory, known := from.MemoryUsage(); known {
		t.Memory = &memory
	}
	from.Events(func(_, _ string, n uint64) { t.Events += n })
	plain, valued := from.Overflow()
	t.Events += plain.Events + valued.Events
	return t
}

// Other is the error type of statuses that aren't in the catalog.
const Other = "other"

func errorsOf(t *tally.Totals) map[string]uint64 {
	found := make(map[string]uint64)
	for k := ringbuf.TypeErrNotPosted; k <= ringbuf.TypeErrNoTelemetry; k++ {
		if n := t.Errors(k).Sum.Lo; n > 0 {
			found[strings.TrimPrefix(k.String(), "agent_err_")] = n
		}
	}
	if n := t.OtherErrors().Lo; n > 0 {
		found[Other] = n
	}
	return found
}

// NewTransfer returns a transfer that was read at a time.
func NewTransfer(t *tally.Transfer, read time.Time) Transfer {
	one := Transfer{
		Time: read, Read: t.Micros == 0, Receive: t.Direction == tally.Receive, Bytes: t.Bytes, Took: t.Duration, Post: t.Post,
		Cause: causes[t.Cause],
	}
	if t.Micros > 0 {
		one.Time = time.UnixMicro(int64(t.Micros))
	}
	return one
}

var causes = map[tally.Cause]string{tally.SlowDuration: "slow_transfer", tally.SlowThroughput: "min_throughput"}
