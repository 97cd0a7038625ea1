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

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/chaos/internal/agent"
	"github.com/nixl-otel/nixl-otel/test/chaos/internal/ledger"
)

// victim is an agent with one name and many lives on its ring, which are ended by actions.
type victim struct {
	name, path string
	journals   string // directory
	seed       uint64
	number     int
	actions    []action

	life  *agent.Life
	lives int
	done  map[string]int // number of actions, by name
	total agent.Account  // sum over the lives that have ended
}

func newVictim(rings, journals string, seed uint64, number int, actions []action) *victim {
	name := fmt.Sprintf("agent-%d", number)
	return &victim{
		name: name, path: filepath.Join(rings, name), journals: journals, seed: seed, number: number,
		actions: actions, done: make(map[string]int),
		total: agent.Account{Written: ledger.Ledger{}, Unread: ledger.Ledger{}},
	}
}

// launch begins the next life, with a random layout and buffer size.
func (v *victim) launch(t *testing.T, rng *rand.Rand) {
	t.Helper()
	v.lives++
	v.life = agent.Launch(t, agent.Config{
		Path: v.path, Journal: filepath.Join(v.journals, fmt.Sprintf("%s.%d", v.name, v.lives)),
		Layout:      pick(rng, ringbuf.Layouts()...),
		Capacity:    pick(rng, 64, 256, 256, 1024, 4096),
		RunInterval: pick(rng, 5*time.Millisecond, 10*time.Millisecond, 20*time.Millisecond, 50*time.Millisecond),
		Rate:        pick(rng, 100.0, 200.0, 400.0),
		Seed:        v.seed, Stream: uint64(v.number)<<32 + uint64(v.lives),
	})
}

// live begins the next life and waits until its ring exists.
func (v *victim) live(t *testing.T, rng *rand.Rand) {
	t.Helper()
	v.launch(t, rng)
	v.life.AwaitStart(t)
}

// account adds up the events of a life that has ended. Unread events may still be read until the
// next life begins.
func (v *victim) account(t *testing.T) {
	t.Helper()
	account := v.life.Account(t)
	v.total.Written.Add(account.Written)
	v.total.Unread.Add(account.Unread)
}

// finish stops the last life normally, so that all its events are read.
func (v *victim) finish(t *testing.T) {
	t.Helper()
	v.life.Stop(t, sigterm)
	v.total.Written.Add(v.life.Account(t).Written)
}

// action ends a life of an agent in some way and begins the next one.
type action struct {
	name string
	do   func(*testing.T, *victim, *rand.Rand)
}

// gentle actions wait until all events are read before the next life begins.
var gentle = []action{
	{"restarted when read", func(t *testing.T, v *victim, rng *rand.Rand) {
		v.life.Stop(t, sigterm)
		v.restartDrained(t, rng)
	}},
	{"killed and read", func(t *testing.T, v *victim, rng *rand.Rand) {
		v.life.Kill(t)
		v.restartDrained(t, rng)
	}},
}

func (v *victim) restartDrained(t *testing.T, rng *rand.Rand) {
	t.Helper()
	must.Eventually(t, func() string {
		if v.life.Drained(t) {
			return ""
		}
		return v.name + " is not drained"
	})
	v.account(t)
	v.live(t, rng)
}

// rude actions don't wait.
var rude = append([]action{
	{"restarted", func(t *testing.T, v *victim, rng *rand.Rand) {
		v.life.Stop(t, sigterm)
		v.account(t)
		v.live(t, rng)
	}},
	{"killed", func(t *testing.T, v *victim, rng *rand.Rand) {
		v.life.Kill(t)
		v.account(t)
		v.live(t, rng)
	}},
	{"killed during start", func(t *testing.T, v *victim, rng *rand.Rand) {
		for range 1 + rng.IntN(3) {
			v.life.Kill(t)
			v.account(t)
			v.launch(t, rng)
			pass(t, upTo(rng, 40*time.Millisecond))
		}
		v.life.Kill(t)
		v.account(t)
		v.live(t, rng)
	}},
	{"truncated", truncated},
	{"removed", removed},
	{"replaced", func(t *testing.T, v *victim, rng *rand.Rand) {
		must.OK(t, os.Remove(v.path))
		old := v.life
		v.live(t, rng)
		// The old agent keeps writing to the removed file, which the Collector may still
		// have open.
		pass(t, upTo(rng, 100*time.Millisecond))
		old.Kill(t)
		account := old.Account(t)
		v.total.Written.Add(account.Written)
		v.total.Unread.Add(account.Unread)
	}},
}, gentle...)

// truncated truncates the ring's file while its agent is suspended, and kills the agent. The agent
// may continue before only if the file is empty; otherwise it could write an unknown number of
// events to the remaining page, which the Collector would count.
func truncated(t *testing.T, v *victim, rng *rand.Rand) {
	v.life.Freeze(t)
	info, err := os.Stat(v.path)
	must.OK(t, err)
	const header = 40
	size := pick(rng, 0, 1+rng.Int64N(header-1), header, rng.Int64N(info.Size()), 4096)
	must.OK(t, os.Truncate(v.path, min(size, info.Size()-1)))
	if size == 0 && pick(rng, true, false) {
		v.life.Signal(t, sigcont)
		pass(t, upTo(rng, 200*time.Millisecond))
	}
	v.life.Kill(t)
	v.account(t)
	if pick(rng, true, false) {
		pass(t, upTo(rng, 200*time.Millisecond))
	}
	if 0 < size && size < header {
		must.OK(t, os.Remove(v.path)) // a real agent overwrites such a file, a simulated agent doesn't
	}
	v.live(t, rng)
}

// removed removes the ring's file while its agent continues.
func removed(t *testing.T, v *victim, rng *rand.Rand) {
	must.OK(t, os.Remove(v.path))
	pass(t, upTo(rng, 500*time.Millisecond))
	if pick(rng, true, false) {
		v.life.Kill(t)
	} else {
		v.life.Stop(t, sigterm)
	}
	v.account(t)
	v.live(t, rng)
}
