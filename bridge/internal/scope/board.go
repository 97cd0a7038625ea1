// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"weak"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/bridge/internal/text"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Limit is the number of names that have series of their own at a MeterProvider. All names
// beyond it share the series with otel.metric.overflow = true from their beginning, so that
// no total ever moves from one series to another.
const Limit = 10_000

// Boards are the boards of a package, one for each MeterProvider in use.
type Boards[I, S any] struct {
	// Key is the attribute with the name.
	Key attribute.Key
	// Instruments creates the instruments and returns those that Observe reports.
	Instruments func(Meter) (I, []metric.Observable)
	// Create returns new series. Identity is the name, or the overflow.
	Create func(in *I, identity attribute.KeyValue) *S
	// Observe reports series at a collection.
	Observe func(*S, metric.Observer)

	mu  sync.Mutex
	all []weak.Pointer[Board[I, S]] // a board lives as long as its MeterProvider, or what uses it
}

// Board holds the series of a package at one MeterProvider. It never removes one: a counter
// that ended and began again would decrease.
type Board[I, S any] struct {
	of          *Boards[I, S]
	provider    metric.MeterProvider
	Instruments I

	mu     sync.Mutex
	byName map[string]*S
	order  []*S // in the order of creation, because the SDK's cardinality limit cuts off the last ones
	others *S   // beyond the limit
}

// Of returns the board of a MeterProvider, or that of the global one if p is nil.
func (bs *Boards[I, S]) Of(p metric.MeterProvider) *Board[I, S] {
	if p == nil {
		p = otel.GetMeterProvider()
	}
	if b := bs.find(p, nil); b != nil {
		return b
	}
	// Without the lock, because the error handler may use the package.
	m := NewMeter(p)
	instruments, observables := bs.Instruments(m)
	b := &Board[I, S]{of: bs, provider: p, Instruments: instruments, byName: make(map[string]*S)}
	if first := bs.find(p, b); first != b {
		return first
	}
	m.Observe(b.observe, observables...)
	return b
}

// find returns the board of a MeterProvider, or else adds b.
func (bs *Boards[I, S]) find(p metric.MeterProvider, b *Board[I, S]) *Board[I, S] {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.all = slices.DeleteFunc(bs.all, func(w weak.Pointer[Board[I, S]]) bool { return w.Value() == nil })
	if reflect.ValueOf(p).Comparable() {
		for _, w := range bs.all {
			if known := w.Value(); known != nil && reflect.ValueOf(known.provider).Comparable() && known.provider == p {
				return known
			}
		}
	}
	if b != nil {
		bs.all = append(bs.all, weak.Make(b))
	}
	return b
}

// Series returns the series with a name.
func (b *Board[I, S]) Series(name string) *S {
	name = text.Valid(name)
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.byName[name]
	switch {
	case s != nil:
	case len(b.byName) < Limit:
		s = b.of.Create(&b.Instruments, b.of.Key.String(name))
		b.byName[name], b.order = s, append(b.order, s)
	case b.others == nil:
		s = b.of.Create(&b.Instruments, attribute.Bool(semconv.MetricOverflow, true))
		b.others, b.order = s, append(b.order, s)
	default:
		s = b.others
	}
	return s
}

// observe is the callback of the instruments. It never returns an error, because the SDK's
// reader would then export nothing, not even the metrics of others.
func (b *Board[I, S]) observe(_ context.Context, o metric.Observer) error { //nolint:unparam // a metric.Callback
	b.mu.Lock()
	all := b.order // only appended to
	b.mu.Unlock()
	for _, s := range all {
		b.of.Observe(s, o)
	}
	return nil
}
