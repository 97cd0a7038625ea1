// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// watched returns the frames of ten seconds of agents. state changes an agent at a second.
func watched(agents int, state func(i, second int, a *diagnose.Agent)) (frames []*diagnose.Frame) {
	for second := range 11 {
		f := &diagnose.Frame{Time: time.Unix(int64(second), 0)}
		for i := range agents {
			a := diagnose.Agent{
				Identity: diagnose.Identity{ID: fmt.Sprintf("%02d", i), Name: fmt.Sprint("decode-", i)}, Up: diagnose.Yes,
				Ring: &diagnose.Ring{Capacity: 1 << 14, Consumer: &diagnose.Consumer{PID: 1, Name: "collector"}},
			}
			state(i, second, &a)
			f.Agents = append(f.Agents, a)
		}
		frames = append(frames, f)
	}
	return frames
}

// transfers adds transfers of 4 MiB and some milliseconds each.
func transfers(a *diagnose.Agent, direction, n int, milliseconds float64) {
	a.Moved[direction] = diagnose.Moved{Bytes: uint64(n) << 22, Transfers: uint64(n), Seconds: float64(n) * milliseconds / 1000}
	a.Events += 4 * uint64(n)
}

// stopped is the state of an agent with transfers before, but none now.
func stopped(a *diagnose.Agent) {
	transfers(a, 0, 100, 1)
	a.Before = 100
}

// said returns the kind, severity and first agent of each finding.
func said(list []diagnose.Finding) (all []string) {
	for _, f := range list {
		all = append(all, fmt.Sprintf("%s %s %s +%d", f.Severity, f.Kind, f.Agents[0].Name, len(f.Agents)-1))
	}
	return all
}

func TestShortWatch(t *testing.T) {
	busy := func(second int, a *diagnose.Agent) { transfers(a, 0, 100+20*second, 1) }
	for name, tt := range map[string]struct {
		agents   int
		state    func(i, second int, a *diagnose.Agent)
		want     []string
		unjudged string // the reason of the check of progress
	}{
		"nothing drains rings": {64, func(i, second int, a *diagnose.Agent) {
			busy(second, a)
			if a.Ring.Consumer, a.Ring.Peak = nil, int(a.Events); i == 7 {
				a.Moved[0].Seconds *= 4
			}
		}, []string{"warning straggler decode-7 +0", "warning no_consumer decode-0 +63"}, ""},
		"rings are full": {2, func(_, second int, a *diagnose.Agent) {
			stopped(a)
			a.Ring.Consumer, a.Ring.Peak, a.Ring.Saturations = nil, 1<<14-1, uint64(second)
		}, []string{"warning ring_full decode-0 +1"}, "no agent completed a transfer, although 2 did before"},
		"another program drains rings": {2, func(_, second int, a *diagnose.Agent) {
			busy(second, a)
			a.Ring.Consumer = nil
		}, []string{"warning events_taken decode-0 +1"}, ""},
		"a consumer hangs": {2, func(_, second int, a *diagnose.Agent) {
			busy(second, a)
			a.Ring.Peak = int(a.Events)
		}, []string{"warning no_consumer decode-0 +1"}, ""},
		"an agent stopped before": {4, func(i, second int, a *diagnose.Agent) {
			if busy(second, a); i == 2 {
				stopped(a)
			}
		}, []string{"warning stalled decode-2 +0"}, ""},
		"a spare agent": {4, func(i, second int, a *diagnose.Agent) {
			if i != 2 {
				busy(second, a)
			}
		}, []string{"info idle decode-2 +0"}, ""},
		"all stopped before":  {4, func(_, _ int, a *diagnose.Agent) { stopped(a) }, nil, "no agent completed a transfer, although 4 did before"},
		"all have never done": {4, func(int, int, *diagnose.Agent) {}, nil, "no agent completed a transfer"},
		"reads of one agent are slow": {5, func(i, second int, a *diagnose.Agent) {
			transfers(a, 0, 100*second, 1)
			if transfers(a, 1, 20*second, 1); i == 3 {
				transfers(a, 1, 20*second, 4)
			}
		}, []string{"warning straggler decode-3 +0"}, ""},
		"reads of one agent hang": {5, func(i, second int, a *diagnose.Agent) {
			transfers(a, 0, 100*second, 1)
			if transfers(a, 1, 20*second, 1); i == 3 {
				transfers(a, 1, 20*min(second, 5), 1)
			}
		}, []string{"warning stalled decode-3 +0"}, ""},
		"reads of one agent hung before": {5, func(i, second int, a *diagnose.Agent) {
			transfers(a, 0, 100*second, 1)
			for d := range a.Remembered {
				a.Remembered[d] = diagnose.Moved{Bytes: 100 << 22, Transfers: 100, Seconds: 0.1}
			}
			if a.Before = 200; i != 3 {
				transfers(a, 1, 100*second, 1)
			}
		}, []string{"warning stalled decode-3 +0"}, ""},
		"one of two jobs stopped before": {8, func(i, second int, a *diagnose.Agent) {
			if busy(second, a); i < 4 {
				stopped(a)
				a.Service = "prefill"
			}
		}, nil, "no agent of prefill completed a transfer, although 4 did before"},
		"all became slow before": {4, func(_, second int, a *diagnose.Agent) {
			transfers(a, 0, 100+20*second, 8)
			a.Remembered[0] = diagnose.Moved{Bytes: 100 << 22, Transfers: 100, Seconds: 0.1}
		}, []string{"warning job_slower decode-0 +3"}, ""},
		"a loop of crashes": {2, func(i, second int, a *diagnose.Agent) {
			if busy(second, a); i == 1 {
				a.Ring.Restarts = uint64(second / 3)
			}
		}, []string{"warning crash_loop decode-1 +0"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnose.Watched(watched(tt.agents, tt.state), diagnose.Watch(10*time.Second))
			if d := cmp.Diff(tt.want, said(r.Findings)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			i := slices.IndexFunc(r.Checks, func(c diagnose.Check) bool { return c.Name == "progress" })
			if got := r.Checks[i].Reason; got != tt.unjudged || strings.HasPrefix(got, "no agent") != (r.Still != "") {
				t.Errorf("progress: %q, nothing moves: %q, want %q", got, r.Still, tt.unjudged)
			}
		})
	}
}
