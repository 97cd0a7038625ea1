// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/test/chaos/internal/ledger"
)

// The Collector is killed repeatedly, while agents restart and their files are truncated, removed
// and replaced. The final totals may lack only events that were uncommitted in a ring when its
// agent restarted or its file was removed.
func TestOnlyUnreadEventsAreLostWhenAgentsAndCollectorAreKilled(t *testing.T) {
	t.Parallel()
	rng, seed := chance(t)
	kills := int(number(t, "CHAOS_KILLS", 10))
	rings := t.TempDir()
	k := newKiller(t, rng, rings, filepath.Join(t.TempDir(), "state"), false)
	k.stalls = true
	var victims []*victim
	for i, actions := range [][]action{gentle, gentle, rude, rude, rude, rude} {
		victims = append(victims, newVictim(rings, t.TempDir(), seed, i, actions))
	}

	killed, ended := make(chan struct{}), make(chan struct{})
	enough := sync.OnceFunc(func() { close(killed) })
	defer func() {
		enough()
		<-ended
	}()
	go func() {
		defer close(ended)
		torment(t, rand.New(rand.NewPCG(seed, 1)), victims, killed)
	}()
	for k.kills < kills && !t.Failed() {
		k.round(t)
	}
	enough()
	// The last Collector, which isn't killed, reads the agents' last events.
	k.last(t, func() string {
		select {
		case <-ended:
			return undrained(t, rings)
		default:
			return "agents are still running"
		}
	})
	t.Logf("%d kills of the Collector; %s", k.kills, k.excused())
	got := k.to.Totals()
	for _, v := range victims {
		v.check(t, got[v.path], k.unsaved[v.path].most)
	}
	k.check(t)
}

// torment performs random actions on agents until killed is closed, and then stops all agents
// normally.
func torment(t *testing.T, rng *rand.Rand, victims []*victim, killed <-chan struct{}) {
	t.Helper()
	for _, v := range victims {
		v.live(t, rng)
	}
	for {
		select {
		case <-killed:
			for _, v := range victims {
				v.finish(t)
			}
			return
		case <-time.After(upTo(rng, 300*time.Millisecond)):
			v := pick(rng, victims...)
			action := pick(rng, v.actions...)
			v.done[action.name]++
			action.do(t, v, rng)
		}
	}
}

// check compares an agent's totals from the Collector with the events that it has written. A number
// of them wasn't saved before a kill.
func (v *victim) check(t *testing.T, got ledger.Series, unsaved uint64) {
	t.Helper()
	written, unread := v.total.Written.Series(), v.total.Unread.Series()
	var lost, mayBe uint64
	for name, most := range written {
		least, n := most-unread[name], got[name]
		if n > most || n < least && unsaved == 0 {
			t.Errorf("%s: %s is %d, want %s", v.name, name, n, limits(least, most))
		}
		if strings.HasPrefix(name, "nixl.events{") {
			lost += most - n
			mayBe += unread[name]
		}
	}
	if lost > mayBe+unsaved {
		t.Errorf("%s: %d events are lost, want at most %d that weren't read and %d that weren't saved", v.name, lost, mayBe, unsaved)
	}
	restarts := got["nixl.telemetry.ring.restarts"]
	if restarts >= uint64(v.lives) && unsaved == 0 {
		t.Errorf("%s: %d restarts in %d lives", v.name, restarts, v.lives)
	}
	if n := got["nixl.telemetry.ring.foreign_reads"]; n != 0 && unsaved == 0 {
		t.Errorf("%s: %d foreign reads, want 0", v.name, n)
	}
	t.Logf("%s: %d events in %d lives (%v), %d lost of at most %d; %d restarts detected",
		v.name, v.total.Written.Events(), v.lives, v.done, lost, mayBe, restarts)
}

func limits(least, most uint64) string {
	if least == most {
		return fmt.Sprint(most)
	}
	return fmt.Sprintf("%d to %d", least, most)
}
