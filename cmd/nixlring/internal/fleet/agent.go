// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// otherError is the error type of statuses that aren't in the catalog.
const otherError = "other"

// newAgent returns the state of an agent. The agents with the same service.name are peers, or else those of
// one directory.
func newAgent(s *engine.Snapshot, seen *transfers) diagnose.Agent {
	a := diagnose.Agent{
		Path: s.Path, Attributes: make(map[string]string), Layout: s.LayoutName(), Store: s.Store,
		Start: s.Start, Up: [...]diagnose.Up{engine.UpUnknown: diagnose.Unknown, engine.UpNo: diagnose.No, engine.UpYes: diagnose.Yes}[s.Up],
	}
	for _, set := range []attribute.Set{s.Process, s.Resource, s.Stream} {
		describe(a.Attributes, set)
	}
	a.ID, a.Name = s.ID, s.Name
	setTotals(&a, s.Totals, seen)
	return a
}

func describe(attributes map[string]string, set attribute.Set) {
	for it := set.Iter(); it.Next(); {
		kv := it.Attribute()
		attributes[string(kv.Key)] = kv.Value.String()
	}
}

// identify sets the agent's name, which begins with those of its pod and container, and its job. Both are printable.
func identify(a *diagnose.Agent) {
	const short = 8 // of a UID
	first := func(keys ...string) string {
		if v := a.Attributes[keys[0]]; v != "" {
			return v
		}
		v := a.Attributes[keys[1]]
		return v[:min(len(v), short)]
	}
	parts := []string{first(podName, semconv.K8SPodUID), first(semconv.K8SContainerName, semconv.ContainerID), a.Name}
	a.Name = units.Printable(strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "/"))
	a.Service = units.Printable(cmp.Or(a.Attributes[semconv.ServiceName], path.Dir(a.Path)))
}

// setTotals sets the counters.
func setTotals(a *diagnose.Agent, t *tally.Totals, seen *transfers) {
	for d := range a.Moved {
		a.Moved[d] = diagnose.Moved{Bytes: t.Size(tally.Direction(d)).Total().Lo, Transfers: t.Requests(tally.Direction(d)).Sum.Lo}
	}
	a.Undivided = a.Store
	seen.divide(&a.Moved, seconds(t.Duration().Total().Lo))
	a.Post, a.Dropped = seconds(t.PostDuration().Total().Lo), t.Dropped().Sum.Lo
	a.Times, a.Sizes = histogram(t.Duration()), histogram(t.Size(tally.Transmit), t.Size(tally.Receive))
	a.Errors = make(map[string]uint64)
	for k := ringbuf.TypeErrNotPosted; k <= ringbuf.TypeErrNoTelemetry; k++ {
		if n := t.Errors(k).Sum.Lo; n > 0 {
			a.Errors[strings.TrimPrefix(k.String(), "agent_err_")] = n
		}
	}
	if n := t.OtherErrors().Lo; n > 0 {
		a.Errors[otherError] = n
	}
	if memory, known := t.MemoryUsage(); known {
		a.Memory = &memory
	}
	t.Events(func(_, _ string, n uint64) { a.Events += n })
	plain, valued := t.Overflow()
	a.Events += plain.Events + valued.Events
	for i := range t.Series() {
		if s := &t.Series()[i]; s.Unknown() {
			if a.Unknown == nil {
				a.Unknown = make(map[string]uint64)
			}
			a.Unknown[s.Name] += max(s.Events, 1) // a store has no number of events
		}
	}
	if !a.Store {
		a.Ring = &diagnose.Ring{
			Capacity: t.Capacity(), Peak: int(t.Utilization()*float64(t.Capacity()-1) + 0.5), Saturations: t.Saturations(),
			Restarts: t.Restarts(), Torn: t.TornGroups(), Foreign: t.ForeignReads(), Misses: t.Misses(),
		}
	}
}

// histogram returns the sum of histograms with the same bounds.
func histogram(list ...*tally.Histogram) (h diagnose.Histogram) {
	for _, from := range list {
		switch {
		case from.Kind() != tally.Explicit:
		case h.Counts == nil:
			h = diagnose.Histogram{Bounds: from.Bounds(), Counts: slices.Clone(from.Counts())}
		default:
			h.Add(diagnose.Histogram{Bounds: from.Bounds(), Counts: from.Counts()})
		}
	}
	return h
}

func seconds(micros uint64) float64 { return float64(micros) / 1e6 }

// Where describes where the agent runs, as far as it is known.
func Where(a *diagnose.Agent) (parts []string) {
	for _, one := range []struct{ word, key string }{
		{"host", semconv.HostName},
		{"service", semconv.ServiceName},
		{"namespace", podNamespace},
		{"pod", podName},
		{"pod", semconv.K8SPodUID},
		{"container", semconv.K8SContainerName},
		{"container", semconv.ContainerID},
		{"rank", semconv.LocalRank},
		{"pid", semconv.ProcessPID},
	} {
		if value := a.Attributes[one.key]; value != "" {
			parts = append(parts, one.word+" "+units.Printable(value))
		}
	}
	return parts
}

// transfers collects the transfers of an agent between two frames.
type transfers struct {
	limit time.Duration // above which transfers are slow; 0 for none
	took  [2]float64    // seconds by direction, since the frame before
	slow  []diagnose.Transfer
	list  []diagnose.Transfer // the others

	all   float64           // seconds of both directions, in the frame before
	moved [2]diagnose.Moved // likewise, by direction

	framed bool             // the agent was in a frame
	lap    []tally.Transfer // those that were in its ring before
}

// add adds a transfer.
func (x *transfers) add(t *tally.Transfer) {
	x.took[t.Direction] += seconds(t.Duration)
	if !x.framed && len(x.lap) < mostSlow {
		x.lap = append(x.lap, *t)
	}
	one := diagnose.Transfer{
		Read: t.Micros == 0 || t.Micros > lastMicros, Receive: t.Direction == tally.Receive, Bytes: t.Bytes, Took: seconds(t.Duration),
		Post: seconds(t.Post),
	}
	if !one.Read {
		one.Time = time.UnixMicro(int64(t.Micros))
	}
	if x.limit > 0 && one.Took > x.limit.Seconds() && len(x.slow) < mostSlow {
		x.slow = append(x.slow, one)
		return
	}
	if x.list = append(x.list, one); len(x.list) > 2*mostSlowest {
		x.list = slowest(x.list)
	}
}

// lastMicros is the end of the year 9999 in UTC+14. JSON has no later times, and no agent does.
const lastMicros = 253402250399_999999

// divide sets the times by direction, given that of both. Neither rings nor stores have them, so what the frame
// before lacks is divided as that of the transfers that were seen since, or else by their bytes, which says nothing about speeds.
func (x *transfers) divide(moved *[2]diagnose.Moved, all float64) {
	if all < x.all || moved[0].Bytes < x.moved[0].Bytes || moved[1].Bytes < x.moved[1].Bytes { // new totals
		x.all, x.moved = 0, [2]diagnose.Moved{}
	}
	shares := x.took
	if shares[0]+shares[1] == 0 {
		shares = [2]float64{float64(moved[0].Bytes - x.moved[0].Bytes), float64(moved[1].Bytes - x.moved[1].Bytes)}
	}
	for d := range moved {
		moved[d].Seconds = x.moved[d].Seconds
		if sum := shares[0] + shares[1]; sum > 0 {
			moved[d].Seconds += (all - x.all) * shares[d] / sum
		}
	}
	x.took, x.all, x.moved = [2]float64{}, all, *moved
}

// slowest sorts transfers, and returns the slowest ones.
func slowest(list []diagnose.Transfer) []diagnose.Transfer {
	slices.SortStableFunc(list, func(a, b diagnose.Transfer) int { return cmp.Compare(b.Took, a.Took) })
	return list[:min(len(list), mostSlowest)]
}

// take returns the transfers since the frame before: all slow ones, and the slowest of the others. The first frame of an
// agent has only slow ones, because those that were in its ring may be old.
func (x *transfers) take(now time.Time) []diagnose.Transfer {
	list := x.slow
	if x.framed {
		list = append(list, slowest(x.list)...)
	}
	for i := range list {
		if list[i].Time.IsZero() {
			list[i].Time = now
		}
	}
	x.slow, x.list, x.framed = nil, nil, true
	return list
}
