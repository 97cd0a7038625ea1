// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// storeWorld simulates everything outside the owner of stores: processes, the goroutine of
// their directory, a storage extension, and a backend. It comes from a seed.
type storeWorld struct {
	*rand.Rand
	owner *owner
	cfg   Config
	now   time.Time
	inbox []Message

	saves, failing, crashes, ranks bool // plan: with storage, which fails; crashes; attributes change
	clusters, cluster              int  // values of an attribute of all agents; a Collector sets one of them
	healed                         bool // storage no longer fails
	processes                      []*storeProcess
	values                         map[string][]byte // in storage
	late                           []func()          // calls of the storage extension on their way
	skipped                        int               // steps since they were made

	backend map[string]uint64 // events of each stream
	trace   []string
}

// storeProcess is a process of an agent, and what the directory knows about its store.
type storeProcess struct {
	agent, file, rank string
	started           time.Time
	total             uint64
	exited, removed   bool // exited; its file was removed
	missed            bool // not all values can be counted

	store *Store // nil until the directory opened it
	sent  uint64 // total as of the last message
	done  bool   // the final values were sent
	safe  bool   // and exported, with storage after they were stored
}

func newStoreWorld(seed uint64) *storeWorld {
	shape, err := tally.NewShape(tally.Config{})
	if err != nil {
		panic(err)
	}
	r := rand.New(rand.NewPCG(seed, 1))
	w := &storeWorld{
		Rand: r, now: time.Unix(1_700_000_000, 0), values: make(map[string][]byte), backend: make(map[string]uint64),
		saves: r.IntN(4) > 0, failing: r.IntN(4) == 0, ranks: r.IntN(2) == 0,
	}
	w.clusters = 1 + r.IntN(2)
	w.crashes = w.saves && !w.failing && r.IntN(2) == 0
	w.cfg = Config{Shape: shape, RunInterval: time.Second, StaleAfter: 24 * time.Hour, Stream: w.stream}
	w.boot()
	return w
}

func (w *storeWorld) stream(s *Snapshot) attribute.Set {
	rank := "0"
	if w.ranks {
		rank = s.Processes[len(s.Processes)-1].LocalRank
	}
	return attribute.NewSet(attribute.String("agent", s.Name), attribute.String("rank", rank), attribute.Int("cluster", w.cluster))
}

// boot starts the Collector, which finds all files.
func (w *storeWorld) boot() {
	w.owner, w.inbox, w.late, w.cluster = newOwner(&w.cfg, w.saves), nil, nil, w.IntN(w.clusters)
	for _, p := range w.processes {
		p.missed = p.missed || p.removed && !p.safe
		p.store, p.sent, p.done = nil, 0, false
	}
}

// crash ends the Collector. Calls of the storage extension that aren't answered may have
// been made.
func (w *storeWorld) crash() {
	for _, call := range w.late {
		if w.IntN(2) == 0 {
			call()
		}
	}
	w.boot()
	w.note("crash, and restart in cluster %d", w.cluster)
}

func (w *storeWorld) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%v ", w.now.Sub(time.Unix(1_700_000_000, 0)))+fmt.Sprintf(format, args...))
}

// step advances the time, and performs the owner's effects.
func (w *storeWorld) step() {
	w.now = w.now.Add(time.Duration(w.IntN(2000)) * time.Millisecond)
	for range 3 {
		in := w.inbox
		w.inbox = nil
		_, effects := w.owner.step(w.now, in)
		for _, e := range effects {
			e.run(w)
		}
	}
}

// answer makes the calls of the storage extension that are on their way, in order.
func (w *storeWorld) answer() {
	late := w.late
	w.late, w.skipped = nil, 0
	for _, call := range late {
		call()
	}
}

// storeWorld implements env.

func (w *storeWorld) load(id, key string) {
	w.late = append(w.late, func() {
		if w.failing && !w.healed && w.IntN(10) == 0 {
			w.inbox = append(w.inbox, loaded{id: id, err: errors.New("timeout")})
		} else {
			w.inbox = append(w.inbox, loaded{id: id, value: w.values[key]})
		}
	})
}

func (w *storeWorld) save(b *batch, ops []checkpoint.Op) {
	ops = slices.Clone(ops)
	w.late = append(w.late, func() {
		if w.failing && !w.healed && w.IntN(4) == 0 {
			w.inbox = append(w.inbox, saved{batch: b, err: errors.New("full")})
			return
		}
		for _, op := range ops {
			w.values[op.Key] = op.Value
		}
		w.inbox = append(w.inbox, saved{batch: b})
	})
}

func (w *storeWorld) forget(key string) { delete(w.values, key) }

func (w *storeWorld) report(n notice.Notice) {
	w.note("notice: %v", n)
}

func (w *storeWorld) reply(c *collect) {
	for i := range c.snapshots {
		s := &c.snapshots[i]
		set, _ := s.Stream.MarshalJSON() // strings can be encoded
		n := s.Totals.Requests(tally.Transmit).Sum.Lo
		w.note("export: %s since %v, until %v: %d", set, s.Start.UnixNano(), s.End, n)
		key := s.ID + string(set) + s.Start.String()
		w.backend[key] = max(w.backend[key], n) // a smaller total is a reset for a backend, which keeps the events before
	}
	c.done(c.collected)
	w.inbox = append(w.inbox, delivered{c.number}, released{c.collected})
}

// storeWorld implements Source.

func (*storeWorld) Close(*ringbuf.Reader)         {}
func (*storeWorld) Reopen(Agent, *ringbuf.Reader) {}
func (*storeWorld) Retire(Agent, *ringbuf.Reader) {}
func (*storeWorld) Refuse(Agent, *ringbuf.Reader) {}

// read sends the values of the stores that have changed, as the directory does. With probe,
// it also finds new files, and notices exits.
func (w *storeWorld) read(probe bool) {
	var m Read
	for _, p := range w.processes {
		switch {
		case p.done, p.store == nil && (!probe || p.removed):
			continue
		case p.store == nil:
			id := "store " + p.agent
			p.store = &Store{
				Agent: Agent{ID: id, Name: p.agent, Path: "/stores/" + p.file}, From: w, File: p.file, Bounds: []float64{10},
				Process: Process{LocalRank: p.rank, Start: p.started},
			}
		case p.total == p.sent && (!probe || !p.exited):
			continue
		}
		v := &tally.Values{Duration: tally.Distribution{Counts: make([]uint64, 2)}, Post: tally.Distribution{Counts: make([]uint64, 2)}}
		v.Sums[ringbuf.TypeTxRequests].Lo = p.total
		v.Duration.Counts[0] = p.total
		p.sent = p.total
		one := Values{Store: p.store, Values: v, Up: UpYes}
		if probe && p.exited {
			p.done, one.Up = true, UpNo
		}
		m = append(m, one)
	}
	if len(m) > 0 {
		w.inbox = append(w.inbox, m)
	}
}

// act does one random thing.
func (w *storeWorld) act() {
	switch w.IntN(12) {
	case 0:
		started := w.now.Add(time.Duration(len(w.processes)))
		p := &storeProcess{agent: fmt.Sprint("agent-", w.IntN(2)), rank: fmt.Sprint(w.IntN(2)), started: started}
		p.file = fmt.Sprintf("nixl.%d.%d.0.mmap", len(w.processes), started.UnixNano())
		w.processes = append(w.processes, p)
		w.note("start %s of %s, rank %s", p.file, p.agent, p.rank)
	case 1:
		if p := w.any(); p != nil {
			p.exited = true
			w.note("exit of %s", p.file)
		}
	case 2:
		if p := w.any(); p != nil && p.exited && !p.removed {
			p.removed, p.missed = true, p.store == nil && !p.safe
			w.note("remove %s", p.file)
		}
	case 3:
		if w.crashes && w.IntN(4) == 0 {
			w.crash()
		}
	case 4, 5:
		w.read(true)
	case 6, 7:
		w.collect()
	default:
		if p := w.any(); p != nil && !p.exited {
			p.total += uint64(1 + w.IntN(9))
		}
	}
}

func (w *storeWorld) any() *storeProcess {
	if len(w.processes) == 0 {
		return nil
	}
	return w.processes[w.IntN(len(w.processes))]
}

func (w *storeWorld) collect() {
	w.read(false)
	var final []*storeProcess
	for _, p := range w.processes {
		if p.done {
			final = append(final, p)
		}
	}
	w.inbox = append(w.inbox, &collect{deadline: w.now.Add(time.Hour), done: func(c collected) {
		for _, p := range final { // an agent whose checkpoint isn't loaded isn't exported
			p.safe = p.safe || slices.ContainsFunc(c.snapshots, func(s Snapshot) bool { return s.Name == p.agent })
		}
	}})
}

// simulateStores runs a seed, and returns what is wrong.
func simulateStores(seed uint64) (w *storeWorld, wrong string) {
	w = newStoreWorld(seed)
	for range 100 + w.IntN(400) {
		w.act()
		w.step()
		if w.skipped++; w.skipped > 2 || w.IntN(2) == 0 {
			w.answer()
		}
	}
	w.healed = true
	for range 20 { // longer than lostWait and retries
		w.read(true)
		w.collect()
		w.step()
		w.answer()
		w.step()
	}
	return w, w.check()
}

// check compares what the backend has received with what the processes have counted.
func (w *storeWorld) check() string {
	least, most, got := make(map[string]uint64), make(map[string]uint64), make(map[string]uint64)
	for _, p := range w.processes {
		most[p.agent] += p.total
		if !p.missed {
			least[p.agent] += p.total
		}
	}
	for key, n := range w.backend {
		got[key[len("store "):len("store agent-0")]] += n
	}
	for agent := range most {
		if n := got[agent]; n < least[agent] || n > most[agent] {
			return fmt.Sprintf("%s: %d transfers were exported, want %d to %d", agent, n, least[agent], most[agent])
		}
	}
	return ""
}

// TestSimulationOfStores runs processes with stores, a storage extension and crashes from
// seeds. Each transfer is exported exactly once, unless its store was removed before it was
// read and stored.
func TestSimulationOfStores(t *testing.T) {
	for seed := *first; seed < *first+*seeds/3; seed++ {
		if *one != 0 {
			seed = *one
		}
		w, wrong := simulateStores(seed)
		if wrong != "" {
			t.Fatalf("seed %d: %s\n%s", seed, wrong, strings.Join(w.trace, "\n"))
		}
		if *one != 0 {
			return
		}
	}
}
