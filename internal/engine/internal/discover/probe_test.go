// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// probeResults returns the probe results in the messages, in order.
func probeResults(messages []drain.Message) (results []string) {
	for _, m := range messages {
		if m, ok := m.(drain.Attended); ok {
			results = append(results, map[drain.Up]string{drain.UpYes: "open", drain.UpNo: "exited", drain.UpUnknown: "unknown"}[m.Up])
		}
	}
	return results
}

func TestProbeDetectsExitAndRestart(t *testing.T) {
	for _, mode := range []ringbuf.Mode{ringbuf.Consume, ringbuf.Observe} {
		t.Run(mode.String(), func(t *testing.T) {
			x := newFixture(t)
			ring := x.ring("agent", ringbuf.V4, 8)
			d := x.directory(func(c *options) { c.Observe = mode == ringbuf.Observe })
			x.round(d)
			x.round(d)
			// The owner knows the result of the first probe.
			if got := probeResults(x.owner.takeMessages()); !slices.Equal(got, []string{"open"}) {
				t.Fatalf("results = %v", got)
			}
			must.OK(t, ring.Close())
			x.round(d)
			x.round(d)
			if got := probeResults(x.owner.takeMessages()); len(got) == 0 || got[len(got)-1] != "exited" {
				t.Errorf("results = %v", got)
			}
			x.ring("agent", ringbuf.V4, 8)
			x.round(d)
			if got := probeResults(x.owner.takeMessages()); len(got) == 0 || got[len(got)-1] != "open" {
				t.Errorf("after a restart results = %v", got)
			}
		})
	}
}

// A thousand directories that are looked at four times per second take more than a percent of a core.
func TestDirectoryIsLookedAtLessOftenWhileAllItsAgentsRun(t *testing.T) {
	x := newFixture(t)
	d := x.directory(nil)
	var got []time.Duration
	then := func() {
		x.round(d)
		got = append(got, d.pollEvery())
	}
	then()
	ring := x.ring("agent", ringbuf.V4, 8)
	then()
	other := x.ring("other", ringbuf.V4, 8)
	then()
	must.OK(t, other.Close())
	then()
	must.OK(t, ring.Close())
	if want := []time.Duration{pollInterval, usedInterval, usedInterval, pollInterval}; !slices.Equal(got, want) {
		t.Errorf("without agents, with one, with two, and after an exit: %v, want %v", got, want)
	}
}

// A message that an owner doesn't receive stays in memory.
func TestResultsOfProbesDoNotAccumulateWhileTheOwnerHangs(t *testing.T) {
	x := newFixture(t)
	ring := x.ring("agent", ringbuf.V4, 8)
	d := x.directory(func(c *options) { c.CloseExited = true })
	x.round(d)
	must.OK(t, ring.Close())
	x.owner.takeMessages()
	x.owner.mute = true
	for range 100 {
		d.refresh()
	}
	if n := len(x.owner.takeMessages()); n > 2 {
		t.Errorf("%d messages for a ring", n)
	}
	x.owner.mute = false
	x.owner.loop.Send(drain.Attended{Pending: &d.records[x.path("agent")].pending}) // the first one
	x.owner.drain()
	x.round(d)
	if got := probeResults(x.owner.takeMessages()); len(got) == 0 || got[0] != "exited" {
		t.Errorf("after the owner has received the last result, results = %v", got)
	}
}

// Where the kernel can't tell whether a process has a ring open, the processes' mappings do. A mapping of a
// removed file is recognized only if it was known before.
func TestMappingsTellWhetherAnAgentHasExited(t *testing.T) {
	for upper, dir := range ringtest.Overlays(t) {
		for name, tt := range map[string]struct {
			sought, removed bool
			want            []string
		}{
			"exits":                       {false, false, []string{"open", "exited", "exited"}},
			"removed, exits":              {false, true, []string{"open", "exited"}},
			"removed before it was known": {true, true, nil},
		} {
			x := newFixture(t)
			x.dir = filepath.Join(dir, name)
			must.OK(t, os.Mkdir(x.dir, 0o700))
			ring, up, sought := x.ring("agent", ringbuf.V4, 8), drain.UpYes, tt.sought
			d := x.directory(func(o *options) {
				o.Identify = func(a drain.Agent, _ files.ID, _ time.Time) attributed {
					if a.Attribution = drain.Known; sought {
						a.Attribution = drain.Sought
					}
					return attributed{Agent: a, up: up}
				}
			})
			x.round(d)
			if tt.removed {
				must.OK(t, os.Remove(ring.Path()))
				x.round(d)
			}
			up, sought = drain.UpNo, false
			x.round(d)
			x.round(d)
			if diff := cmp.Diff(tt.want, probeResults(x.owner.takeMessages())); diff != "" {
				t.Errorf("%s on %s: %s", name, upper, diff)
			}
		}
	}
}
