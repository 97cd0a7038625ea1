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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/chaos/internal/ledger"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// Everything happens at the same time, for as long as CHAOS_SOAK says: the Collector is killed, its
// disk hangs, agents are killed and restart, and hostile neighbors write invalid files. It prints a
// line per minute.
func TestSoak(t *testing.T) {
	long := duration(t, "CHAOS_SOAK", 0)
	if long == 0 {
		t.Skip("`make chaos MINUTES=10` sets CHAOS_SOAK")
	}
	rng, seed := chance(t)
	rings, d := t.TempDir(), newDisk(t)
	k := newKiller(t, rng, rings, filepath.Join(d.path, "state"), false)
	k.state, k.stalls = filepath.Join(d.data, "state"), true
	var fleets []*proc.Process
	for _, f := range []fleet{small, large} {
		fleets = append(fleets, f.start(t, rings, seed))
	}
	var victims []*victim
	for i, actions := range [][]action{gentle, gentle, rude, rude, rude, rude} {
		victims = append(victims, newVictim(rings, t.TempDir(), seed, i, actions))
	}

	over, ended := make(chan struct{}), make(chan struct{})
	end := sync.OnceFunc(func() { close(over) })
	var helpers sync.WaitGroup
	defer func() {
		end()
		helpers.Wait()
	}()
	helpers.Go(func() { attack(t, rand.New(rand.NewPCG(seed, 2)), rings, over) })
	helpers.Go(func() {
		defer close(ended)
		torment(t, rand.New(rand.NewPCG(seed, 1)), victims, over)
	})

	hangs, begun := 0, time.Now()
	for minute := 1; time.Since(begun) < long && !t.Failed(); {
		if d.path != d.data && rng.IntN(10) == 0 {
			k.hang(t, d)
			hangs++
		} else {
			k.round(t)
		}
		if time.Since(begun) >= time.Duration(minute)*time.Minute {
			counted, restarts := count(k.to.Totals())
			t.Logf("minute %d: %d Collectors killed, the disk hung %d times, %d events counted, %d restarts of agents seen", minute, k.kills, hangs, counted, restarts)
			minute = int(time.Since(begun)/time.Minute) + 1
		}
	}
	end()
	want := make(map[string]ledger.Series)
	for _, f := range fleets {
		maps.Copy(want, stop(t, f))
	}
	k.last(t, func() string {
		select {
		case <-ended:
			return undrained(t, rings)
		default:
			return "agents are still running"
		}
	})
	got := k.to.Totals()
	for path, series := range want {
		k.compare(t, path, series, got[path])
	}
	for _, v := range victims {
		v.check(t, got[v.path], k.unsaved[v.path].most)
	}
	k.check(t)
	counted, restarts := count(got)
	t.Logf("in %v: %d Collectors killed, the disk hung %d times, %d events of %d agents counted, %d restarts of agents seen; %s",
		time.Since(begun).Round(time.Second), k.kills, hangs, counted, len(want)+len(victims), restarts, k.excused())
}

// hang lets the disk of a Collector hang, but not for longer than a new ring waits for its checkpoint,
// because its totals would then start from zero. The Collector ends normally, so that it stores what
// it has committed in the meantime.
func (k *killer) hang(t *testing.T, d *disk) {
	t.Helper()
	c := launch(t, k.args, nil)
	c.WaitFor(t, ready)
	k.to.AwaitMore(t)
	d.Lock()
	pass(t, time.Second+upTo(k.rng, 2*time.Second))
	d.Unlock()
	k.to.AwaitMore(t)
	c.Stop(t, sigterm)
	k.note(t, c)
}

// count returns the sums of the events and restarts of all agents.
func count(totals map[string]ledger.Series) (n, restarts uint64) {
	for _, series := range totals {
		n += events(series)
		restarts += series["nixl.telemetry.ring.restarts"]
	}
	return n, restarts
}

// events returns the number of an agent's events.
func events(s ledger.Series) (n uint64) {
	for name, count := range s {
		if strings.HasPrefix(name, "nixl.events{") {
			n += count
		}
	}
	return n
}

// attack creates and removes invalid files, and writes to a ring at random, until over is closed.
func attack(t *testing.T, rng *rand.Rand, rings string, over <-chan struct{}) {
	t.Helper()
	const names = 8
	path := func() string { return filepath.Join(rings, fmt.Sprintf("hostile-%d", rng.IntN(names))) }
	defer func() {
		for i := range names {
			must.OK(t, os.RemoveAll(filepath.Join(rings, fmt.Sprintf("hostile-%d", i))))
		}
	}()
	for {
		select {
		case <-over:
			return
		case <-time.After(upTo(rng, 100*time.Millisecond)):
		}
		at := path()
		must.OK(t, os.RemoveAll(at))
		if rng.IntN(2) == 0 {
			pick(rng, garbage...).make(t, at)
			continue
		}
		w, err := ringbuf.Create(at, pick(rng, ringbuf.Layouts()...), 64)
		must.OK(t, err)
		for range rng.IntN(20) {
			scribble(t, rng, at)
			pass(t, upTo(rng, 10*time.Millisecond))
		}
		must.OK(t, w.Close())
	}
}

// scribble writes to a file at random, or changes its size.
func scribble(t *testing.T, rng *rand.Rand, path string) {
	t.Helper()
	if rng.IntN(8) == 0 {
		must.OK(t, os.Truncate(path, rng.Int64N(4096)))
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must.OK(t, err)
	defer f.Close()
	_, err = f.WriteAt([]byte{byte(rng.IntN(80))}, rng.Int64N(600))
	must.OK(t, err)
}
