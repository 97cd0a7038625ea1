// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/chaos/internal/agent"
	"github.com/nixl-otel/nixl-otel/test/chaos/internal/ledger"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// victim is an agent in trouble: one name, and many lives on its ring.
type victim struct {
	name, path string
	journals   string // directory
	seed       uint64
	number     int
	deeds      []deed

	life  *agent.Life
	lives int
	done  map[string]int // deeds, by name
	total agent.Account  // of the lives that have ended
}

func newVictim(rings, journals string, seed uint64, number int, deeds []deed) *victim {
	name := fmt.Sprintf("agent-%d", number)
	return &victim{
		name: name, path: filepath.Join(rings, name), journals: journals, seed: seed, number: number,
		deeds: deeds, done: make(map[string]int),
		total: agent.Account{Written: ledger.Ledger{}, Unread: ledger.Ledger{}},
	}
}

// launch begins the next life, as another release with another buffer.
func (v *victim) launch(t *testing.T, rng *rand.Rand) {
	t.Helper()
	v.lives++
	v.life = agent.Launch(t, agent.Config{
		Path: v.path, Journal: filepath.Join(v.journals, fmt.Sprintf("%s.%d", v.name, v.lives)),
		Layout:      pick(rng, ringbuf.Layouts()...),
		Capacity:    pick(rng, 64, 256, 256, 1024, 4096),
		RunInterval: pick(rng, 5*time.Millisecond, 10*time.Millisecond, 20*time.Millisecond, 50*time.Millisecond),
		Rate:        pick(rng, 100.0, 200.0, 400.0),
		Seed:        v.seed, Stream: uint64(v.number<<32 + v.lives),
	})
}

// live begins the next life and waits until its ring is there.
func (v *victim) live(t *testing.T, rng *rand.Rand) {
	t.Helper()
	v.launch(t, rng)
	v.life.AwaitStart(t)
}

// bury takes stock of a life that has ended. What is unread now may still be
// read, until the next life begins.
func (v *victim) bury(t *testing.T) {
	t.Helper()
	account := v.life.Account(t)
	v.total.Written.Add(account.Written)
	v.total.Unread.Add(account.Unread)
}

// finish ends the last life in peace: all that it wrote will be read.
func (v *victim) finish(t *testing.T) {
	t.Helper()
	v.life.Stop(t, sigterm)
	v.total.Written.Add(v.life.Account(t).Written)
}

// A deed is what may happen to an agent. It leaves it alive.
type deed struct {
	name string
	do   func(*testing.T, *victim, *rand.Rand)
}

// gentle deeds see to it that everything is read before the next life.
var gentle = []deed{
	{"restarted when read", func(t *testing.T, v *victim, rng *rand.Rand) {
		v.life.Stop(t, sigterm)
		v.reborn(t, rng)
	}},
	{"killed and read", func(t *testing.T, v *victim, rng *rand.Rand) {
		v.life.Kill(t)
		v.reborn(t, rng)
	}},
}

func (v *victim) reborn(t *testing.T, rng *rand.Rand) {
	t.Helper()
	proc.Eventually(t, func() string {
		if v.life.Drained(t) {
			return ""
		}
		return v.name + " is not drained"
	})
	v.bury(t)
	v.live(t, rng)
}

// rude deeds don't wait for anybody.
var rude = append([]deed{
	{"restarted", func(t *testing.T, v *victim, rng *rand.Rand) {
		v.life.Stop(t, sigterm)
		v.bury(t)
		v.live(t, rng)
	}},
	{"killed", func(t *testing.T, v *victim, rng *rand.Rand) {
		v.life.Kill(t)
		v.bury(t)
		v.live(t, rng)
	}},
	{"killed at birth", func(t *testing.T, v *victim, rng *rand.Rand) {
		for range 1 + rng.IntN(3) {
			v.life.Kill(t)
			v.bury(t)
			v.launch(t, rng)
			pass(t, upTo(rng, 40*time.Millisecond))
		}
		v.life.Kill(t)
		v.bury(t)
		v.live(t, rng)
	}},
	{"truncated", truncated},
	{"removed", removed},
	{"replaced", func(t *testing.T, v *victim, rng *rand.Rand) {
		must(t, os.Remove(v.path))
		old := v.life
		v.live(t, rng)
		// The old agent writes on, unseen. Whoever has its ring may go on reading.
		pass(t, upTo(rng, 100*time.Millisecond))
		old.Kill(t)
		account := old.Account(t)
		v.total.Written.Add(account.Written)
		v.total.Unread.Add(account.Unread)
	}},
}, gentle...)

// truncated cuts the ring's file under its agent, which is killed, or dies of
// it. It may go on only if nothing is left of the file: it could write events to the
// page that is left, which the Collector counts, and nobody knows how many.
func truncated(t *testing.T, v *victim, rng *rand.Rand) {
	v.life.Freeze(t)
	info, err := os.Stat(v.path)
	must(t, err)
	const header = 40
	size := pick(rng, 0, 1+rng.Int64N(header-1), header, rng.Int64N(info.Size()), 4096)
	must(t, os.Truncate(v.path, min(size, info.Size()-1)))
	if size == 0 && pick(rng, true, false) {
		v.life.Signal(t, sigcont)
		pass(t, upTo(rng, 200*time.Millisecond))
	}
	v.life.Kill(t)
	v.bury(t)
	if pick(rng, true, false) {
		pass(t, upTo(rng, 200*time.Millisecond))
	}
	if 0 < size && size < header {
		must(t, os.Remove(v.path)) // an agent would write over it, a simulated one doesn't
	}
	v.live(t, rng)
}

// removed takes the name away from a ring whose agent goes on.
func removed(t *testing.T, v *victim, rng *rand.Rand) {
	must(t, os.Remove(v.path))
	pass(t, upTo(rng, 500*time.Millisecond))
	if pick(rng, true, false) {
		v.life.Kill(t)
	} else {
		v.life.Stop(t, sigterm)
	}
	v.bury(t)
	v.live(t, rng)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
