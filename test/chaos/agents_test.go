// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/chaos/internal/agent"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

// restarter is an agent with one name and many lives on its ring.
type restarter struct {
	name, path string
	journals   string // directory
	seed       uint64
	number     int

	life  *agent.Life
	lives int
	total agent.Account  // sum over the lives that have ended
	done  map[string]int // how lives ended
}

func newRestarter(rings, journals string, seed uint64, number int) *restarter {
	name := fmt.Sprintf("agent-%d", number)
	return &restarter{
		name: name, path: filepath.Join(rings, name), journals: journals, seed: seed, number: number,
		total: agent.Account{Written: agent.Counts{}, Unread: agent.Counts{}}, done: make(map[string]int),
	}
}

// restartAtRandom ends lives of agents and begins new ones until over is closed. Then it stops all
// agents normally.
func restartAtRandom(t *testing.T, rng *rand.Rand, agents []*restarter, over <-chan struct{}) {
	t.Helper()
	for _, r := range agents {
		r.begin(t, rng)
	}
	names := slices.Sorted(maps.Keys(endings))
	for {
		select {
		case <-over:
			for _, r := range agents {
				r.life.Stop(t, syscall.SIGTERM)
				r.total.Written.Add(r.life.Account(t).Written)
			}
			return
		case <-time.After(upTo(rng, 300*time.Millisecond)):
			r, name := pick(rng, agents...), pick(rng, names...)
			r.done[name]++
			endings[name](t, r, rng)
		}
	}
}

// launch begins the next life, with a random layout and size of the ring.
func (r *restarter) launch(t *testing.T, rng *rand.Rand) {
	t.Helper()
	r.lives++
	r.life = agent.Launch(t, agent.Config{
		Path: r.path, Journal: filepath.Join(r.journals, fmt.Sprint(r.lives)),
		Layout:      pick(rng, ringbuf.Layouts()...),
		Capacity:    pick(rng, 64, 256, 256, 1024, 4096),
		RunInterval: pick(rng, 5*time.Millisecond, 10*time.Millisecond, 20*time.Millisecond, 50*time.Millisecond),
		Rate:        pick(rng, 100.0, 200.0, 400.0),
		Seed:        r.seed, Stream: uint64(r.number)<<32 + uint64(r.lives),
	})
}

// begin begins the next life and waits until its ring exists.
func (r *restarter) begin(t *testing.T, rng *rand.Rand) {
	t.Helper()
	r.launch(t, rng)
	r.life.AwaitStart(t)
}

// end adds up the events of a life that has ended. Unread events may still be read until the next life
// begins.
func (r *restarter) end(t *testing.T) {
	t.Helper()
	account := r.life.Account(t)
	r.total.Written.Add(account.Written)
	r.total.Unread.Add(account.Unread)
}

// endings end a life of an agent and begin the next one.
var endings = map[string]func(*testing.T, *restarter, *rand.Rand){
	"stopped": func(t *testing.T, r *restarter, rng *rand.Rand) {
		r.life.Stop(t, syscall.SIGTERM)
		r.end(t)
		r.begin(t, rng)
	},
	"killed and read": func(t *testing.T, r *restarter, rng *rand.Rand) {
		r.life.Kill(t)
		must.EventuallyTrue(t, "drained ring of "+r.name, func() bool { return r.life.Drained(t) })
		r.end(t)
		r.begin(t, rng)
	},
	"killed during start": func(t *testing.T, r *restarter, rng *rand.Rand) {
		for range 1 + rng.IntN(3) {
			r.life.Kill(t)
			r.end(t)
			r.launch(t, rng)
			pass(t, upTo(rng, 40*time.Millisecond))
		}
		r.life.Kill(t)
		r.end(t)
		r.begin(t, rng)
	},
	"truncated": truncated,
	"removed": func(t *testing.T, r *restarter, rng *rand.Rand) {
		must.OK(t, os.Remove(r.path))
		pass(t, upTo(rng, 500*time.Millisecond)) // the agent continues
		r.life.Kill(t)
		r.end(t)
		r.begin(t, rng)
	},
	"replaced": func(t *testing.T, r *restarter, rng *rand.Rand) {
		must.OK(t, os.Remove(r.path))
		old := r.life
		r.begin(t, rng)
		// The old agent keeps writing to the removed file, which the Collector may still
		// have open.
		pass(t, upTo(rng, 100*time.Millisecond))
		old.Kill(t)
		account := old.Account(t)
		r.total.Written.Add(account.Written)
		r.total.Unread.Add(account.Unread)
	},
}

// truncated truncates the ring's file while its agent is suspended, and kills the agent. The agent
// may continue before only if the file is empty; otherwise it could write an unknown number of
// events to the remaining page, which the Collector would count.
func truncated(t *testing.T, r *restarter, rng *rand.Rand) {
	r.life.Freeze(t)
	info, err := os.Stat(r.path)
	must.OK(t, err)
	const header = 40
	size := pick(rng, 0, 1+rng.Int64N(header-1), header, rng.Int64N(info.Size()), 4096)
	must.OK(t, os.Truncate(r.path, min(size, info.Size()-1)))
	if size == 0 && pick(rng, true, false) {
		r.life.Signal(t, syscall.SIGCONT)
		pass(t, upTo(rng, 200*time.Millisecond))
	}
	r.life.Kill(t)
	r.end(t)
	if pick(rng, true, false) {
		pass(t, upTo(rng, 200*time.Millisecond))
	}
	if 0 < size && size < header {
		must.OK(t, os.Remove(r.path)) // a real agent overwrites such a file, a simulated agent doesn't
	}
	r.begin(t, rng)
}

// check compares the exported events with the written ones. If a ring was committed before its totals
// were stored, any number may be missing.
func (r *restarter) check(t *testing.T, got otlpfile.Series, uncertain bool) {
	t.Helper()
	var written, lost, unread int64
	for name, most := range r.total.Written {
		least, n := most-r.total.Unread[name], got[name].Int
		if uncertain {
			least = 0
		}
		if n > most || n < least {
			t.Errorf("%s: %s is %d, want %d to %d", r.name, name, n, least, most)
		}
		written, lost, unread = written+most, lost+most-n, unread+r.total.Unread[name]
	}
	restarts := got["nixl.telemetry.ring.restarts"].Int
	if restarts >= int64(r.lives) && !uncertain {
		t.Errorf("%s: %d restarts in %d lives", r.name, restarts, r.lives)
	}
	if n := got["nixl.telemetry.ring.foreign_reads"].Int; n != 0 && !uncertain {
		t.Errorf("%s: %d foreign reads, want 0", r.name, n)
	}
	t.Logf("%s: %d events in %d lives (%v), %d lost of at most %d; %d restarts detected",
		r.name, written, r.lives, r.done, lost, unread, restarts)
}
