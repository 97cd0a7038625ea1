// Package ledger keeps what is counted with a MeterProvider, so that counters
// continue when the object that counted is closed and created again.
package ledger

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"weak"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Ledger reports what is counted with one MeterProvider. It has an [Account]
// for each set of attributes. To the SDK, a counter is as old as its provider:
// a counter that restarts from 0 or is no longer reported has gone backward.
// Therefore an object that is closed leaves its counts in its account, and an
// object created later with the same attributes continues from there.
//
// I is the type of the instruments, A that of the accounts.
type Ledger[I any, A Account[I]] struct {
	provider metric.MeterProvider
	scope    string
	most     int // closed accounts that are kept

	making      sync.Mutex // guards made, and who makes the instruments
	made        bool
	instruments I

	mu       sync.Mutex // guards what follows; held while a reader's collection goes through the accounts
	accounts map[attribute.Distinct]A
	open     []A // those that something counts towards, in the order of their making
	closed   []A // the others, the one closed longest ago first
}

// Account holds what was counted under one set of attributes. The ledger's lock
// guards it.
type Account[I any] interface {
	comparable
	Key() attribute.Distinct
	InUse() bool // an open object counts toward it
	Empty() bool // nothing was counted
	Observe(o metric.Observer, instruments *I)
}

// Report makes the instruments and has the accounts observed, once. After an
// error it tries again the next time.
func (l *Ledger[I, A]) Report(create func(metric.Meter) (I, []metric.Observable, error)) (I, error) {
	l.making.Lock()
	defer l.making.Unlock()
	if l.made {
		return l.instruments, nil
	}
	meter := l.provider.Meter(l.scope)
	instruments, observed, err := create(meter)
	if err != nil {
		return instruments, err
	}
	l.instruments = instruments
	if _, err := meter.RegisterCallback(l.observe, observed...); err != nil {
		return instruments, fmt.Errorf("register the callback of the counters: %w", err)
	}
	l.made = true
	return instruments, nil
}

// observe is the callback: it runs once for each reader's collection. Accounts
// in use come first: where the SDK's limit on series is reached, the closed
// ones are those without a series of their own.
func (l *Ledger[I, A]) observe(_ context.Context, o metric.Observer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.open {
		a.Observe(o, &l.instruments)
	}
	for _, a := range l.closed {
		a.Observe(o, &l.instruments)
	}
	return nil
}

// Join finds the account of a set, or creates it. The function puts in what
// counts towards it from now on.
func (l *Ledger[I, A]) Join(set attribute.Set, create func() A, in func(A)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, ok := l.accounts[set.Equivalent()]
	if !ok {
		a = create()
		if l.accounts == nil {
			l.accounts = make(map[attribute.Distinct]A)
		}
		l.accounts[a.Key()] = a
	}
	if !a.InUse() {
		l.closed = without(l.closed, a)
		l.open = append(l.open, a)
	}
	in(a)
}

// Leave lets the function take something out of an account, into which it puts
// what was counted. The account is kept for its counts, unless newer ones push
// it out.
func (l *Ledger[I, A]) Leave(a A, out func(A)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out(a)
	switch {
	case a.InUse():
	case a.Empty():
		l.forget(a)
	default:
		l.open = without(l.open, a)
		l.closed = append(l.closed, a)
		if len(l.closed) > l.most {
			l.forget(l.closed[0])
		}
	}
}

func (l *Ledger[I, A]) forget(a A) {
	delete(l.accounts, a.Key())
	l.open, l.closed = without(l.open, a), without(l.closed, a)
}

func without[A comparable](list []A, a A) []A {
	return slices.DeleteFunc(list, func(b A) bool { return a == b })
}

// Ledgers finds the ledger of a provider. It keeps none alive: the provider
// does, which has the callback, and the ledger has the provider. So both go
// once the program lets go of the provider and of its readers.
type Ledgers[I any, A Account[I]] struct {
	Scope string // the name of the instrumentation scope
	Most  int    // the number of closed accounts that a ledger keeps

	mu  sync.Mutex
	all []weak.Pointer[Ledger[I, A]]
}

// Of returns the ledger of a provider.
func (s *Ledgers[I, A]) Of(p metric.MeterProvider) *Ledger[I, A] {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := reflect.ValueOf(p).Comparable() // of another, each ledger is one of its own
	live := s.all[:0]
	var found *Ledger[I, A]
	for _, w := range s.all {
		l := w.Value()
		if l == nil {
			continue
		}
		live = append(live, w)
		if known && l.provider == p {
			found = l
		}
	}
	clear(s.all[len(live):])
	s.all = live
	if found == nil {
		found = &Ledger[I, A]{provider: p, scope: s.Scope, most: s.Most}
		if known {
			s.all = append(s.all, weak.Make(found))
		}
	}
	return found
}
