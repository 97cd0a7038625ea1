package bridge

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

// ledger reports what is counted with one MeterProvider, in an account for each
// set of attributes. What is closed leaves its counts in its account, and what
// is made with the same attributes later counts on from there: to the SDK a
// counter is as old as its provider, so that one which starts again from 0, or
// isn't reported any more, has gone back.
type ledger[I any, A account[I]] struct {
	provider metric.MeterProvider
	most     int // closed accounts that are kept

	making      sync.Mutex // guards made, and who makes the instruments
	made        bool
	instruments I

	mu       sync.Mutex // guards what follows; held while a reader's collection goes through the accounts
	accounts map[attribute.Distinct]A
	open     []A // those that something counts towards, in the order of their making
	closed   []A // the others, the one closed longest ago first
}

// account is what was counted under one set of attributes. The ledger's lock
// guards it.
type account[I any] interface {
	comparable
	key() attribute.Distinct
	inUse() bool // something counts towards it
	empty() bool // nothing did
	observe(o metric.Observer, instruments *I)
}

// report makes the instruments and has the accounts observed, once. After an
// error it tries again the next time.
func (l *ledger[I, A]) report(create func(metric.Meter) (I, []metric.Observable, error)) (I, error) {
	l.making.Lock()
	defer l.making.Unlock()
	if l.made {
		return l.instruments, nil
	}
	meter := l.provider.Meter(ScopeName)
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
func (l *ledger[I, A]) observe(_ context.Context, o metric.Observer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.open {
		a.observe(o, &l.instruments)
	}
	for _, a := range l.closed {
		a.observe(o, &l.instruments)
	}
	return nil
}

// join finds the account of a set, or creates it. The function puts in what
// counts towards it from now on.
func (l *ledger[I, A]) join(set attribute.Set, create func() A, in func(A)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, ok := l.accounts[set.Equivalent()]
	if !ok {
		a = create()
		if l.accounts == nil {
			l.accounts = make(map[attribute.Distinct]A)
		}
		l.accounts[a.key()] = a
	}
	if !a.inUse() {
		l.closed = without(l.closed, a)
		l.open = append(l.open, a)
	}
	in(a)
}

// leave lets the function take something out of an account, into which it puts
// what was counted. The account is kept for its counts, unless newer ones push
// it out.
func (l *ledger[I, A]) leave(a A, out func(A)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out(a)
	switch {
	case a.inUse():
	case a.empty():
		l.forget(a)
	default:
		l.open = without(l.open, a)
		l.closed = append(l.closed, a)
		if len(l.closed) > l.most {
			l.forget(l.closed[0])
		}
	}
}

// drop is leave for an account that isn't to be kept.
func (l *ledger[I, A]) drop(a A, out func(A)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if out(a); !a.inUse() {
		l.forget(a)
	}
}

func (l *ledger[I, A]) forget(a A) {
	delete(l.accounts, a.key())
	l.open, l.closed = without(l.open, a), without(l.closed, a)
}

func without[A comparable](list []A, a A) []A {
	return slices.DeleteFunc(list, func(b A) bool { return a == b })
}

// ledgers finds the ledger of a provider. It keeps none alive: the provider
// does, which has the callback, and the ledger has the provider. So both go
// once the program lets go of the provider and of its readers.
type ledgers[I any, A account[I]] struct {
	most int

	mu  sync.Mutex
	all []weak.Pointer[ledger[I, A]]
}

func (s *ledgers[I, A]) of(p metric.MeterProvider) *ledger[I, A] {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := reflect.ValueOf(p).Comparable() // of another, each ledger is one of its own
	live := s.all[:0]
	var found *ledger[I, A]
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
		found = &ledger[I, A]{provider: p, most: s.most}
		if known {
			s.all = append(s.all, weak.Make(found))
		}
	}
	return found
}
