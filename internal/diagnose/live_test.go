// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/diagnose/fleets"
)

// live returns what a tool finds that has watched for the last half hour.
func live(samples []*diagnose.Frame) []diagnose.Finding {
	const half = 30 * time.Minute
	samples = samples[max(0, len(samples)-int(half/fleets.Every)):]
	return diagnose.Now(samples, diagnose.Live(time.Minute, samples[len(samples)-1].Time.Sub(samples[0].Time))).Findings
}

func TestLiveToolNamesEachIncident(t *testing.T) {
	for _, f := range fleets.Incidents() {
		if len(f.Want) == 0 || f.Long {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			samples := f.Frames()
			begin := int(fleets.Begin / fleets.Every)
			for i := begin; i <= len(samples); i++ {
				if got := found(live(samples[:i])); slices.ContainsFunc(f.Want, func(w fleets.Want) bool { return slices.Contains(got, w) }) {
					return
				}
			}
			t.Errorf("never found any of %v, at the end %v", f.Want, found(live(samples)))
		})
	}
}

func TestLiveToolFindsNoSlowdownOfHealthyFleets(t *testing.T) {
	eachMinute(t, func(t *testing.T, f *fleets.Fleet, samples []*diagnose.Frame) {
		for _, finding := range live(samples) {
			if k := finding.Kind; k == diagnose.Slower && !f.Warns || k == diagnose.JobSlower {
				t.Fatalf("at %v: %s %v", samples[len(samples)-1].Time.Sub(samples[0].Time), finding.What, finding.Evidence)
			}
		}
	})
}

// Whoever opened a page shortly before an incident, and looks at it later, must still see that the speed isn't the usual one.
func TestSlowSpeedDoesNotBecomeTheUsualOneWithinMinutes(t *testing.T) {
	for _, name := range []string{"the fleet falls back to TCP", "one of two agents becomes slow"} {
		samples, want := incident(t, name)
		samples = samples[int((fleets.Begin-3*time.Minute)/fleets.Every):]
		for after := time.Minute; after <= 10*time.Minute; after += time.Minute {
			length := 3*time.Minute + after
			if got := found(diagnose.Now(samples[:length/fleets.Every+1], diagnose.Live(time.Minute, length)).Findings); !slices.Contains(got, want[0]) {
				t.Errorf("%s, after %v: found %v, want %v", name, after, got, want)
			}
		}
	}
}

// The windows of a page are short, but after a minute, the job isn't just about to stop.
func TestLiveToolCallsAnAgentThatHangsForAMinuteCritical(t *testing.T) {
	samples, _ := incident(t, "an agent that hangs")
	for after, want := range map[time.Duration]diagnose.Severity{30 * time.Second: diagnose.Warning, 2 * time.Minute: diagnose.Critical} {
		at := int((fleets.Begin + after) / fleets.Every)
		list := diagnose.Now(samples[at-20:at+1], diagnose.Live(15*time.Second, 20*fleets.Every)).Findings
		if len(list) != 1 || list[0].Kind != diagnose.Stalled || list[0].Severity != want {
			t.Errorf("after %v: %+v, want %s", after, list, want)
		}
	}
}

// Storage is read with large transfers. A page that shows the speed of ten seconds sees too few in them.
func TestLiveToolJudgesAgentsWithFewTransfers(t *testing.T) {
	var frames []*diagnose.Frame
	for second := range 120 {
		f := &diagnose.Frame{Time: time.Unix(int64(second), 0)}
		for i, took := range []float64{0.8, 0.8, 3, 0.8} {
			n := uint64(second)
			f.Agents = append(f.Agents, diagnose.Agent{
				Identity: diagnose.Identity{ID: string(rune('a' + i)), Name: "storage-" + string(rune('a'+i))}, Up: diagnose.Yes,
				Moved: [2]diagnose.Moved{{}, {Bytes: n << 29, Transfers: n, Seconds: float64(n) * took}},
			})
		}
		frames = append(frames, f)
	}
	got := found(diagnose.Now(frames, diagnose.Live(10*time.Second, 2*time.Minute)).Findings)
	if len(got) != 1 || got[0] != (fleets.Want{Kind: diagnose.Straggler, Agent: "storage-c"}) {
		t.Errorf("found %v", got)
	}
}

// Three speeds, half a minute apart, are a past.
func TestLiveToolComparesWithThePastAfterTwoMinutes(t *testing.T) {
	var frames []*diagnose.Frame
	sum := diagnose.Moved{}
	for second := 0; second <= 130; second += 10 {
		took := 0.001
		if second > 90 {
			took = 0.004
		}
		frames = append(frames, &diagnose.Frame{Time: time.Unix(int64(second), 0), Agents: []diagnose.Agent{{
			Identity: diagnose.Identity{ID: "a", Name: "decode-0"}, Up: diagnose.Yes, Moved: [2]diagnose.Moved{sum},
		}}})
		sum.Bytes, sum.Transfers, sum.Seconds = sum.Bytes+100<<20, sum.Transfers+100, sum.Seconds+100*took
	}
	for n, want := range map[int]string{
		len(frames) - 1: "in 2 m of watching, no agent had a past at its size and load", len(frames): "1 agent compared, the slowest at 25% of its earlier speed",
	} {
		length := frames[n-1].Time.Sub(frames[0].Time)
		r := diagnose.Now(frames[:n], diagnose.Live(10*time.Second, length))
		c := r.Checks[slices.IndexFunc(r.Checks, func(c diagnose.Check) bool { return slices.Contains(c.Kinds, diagnose.Slower) })]
		if len(r.Findings) > 0 != (n == len(frames)) || c.What != want || c.Well {
			t.Errorf("after %v: found %v, %+v, want %q", length, found(r.Findings), c, want)
		}
	}
}

// thinned removes most of the frames that are older than half a minute, as pages do that are open for long.
func thinned(frames []*diagnose.Frame, rng *rand.Rand) (kept []*diagnose.Frame) {
	const whole, gap = 30 * time.Second, 10 * time.Second
	for i, f := range frames {
		if n := len(kept); n == 0 || frames[len(frames)-1].Time.Sub(f.Time) <= whole || frames[i+1].Time.Sub(kept[n-1].Time) > gap || rng.IntN(4) == 0 {
			kept = append(kept, f)
		}
	}
	return kept
}

func TestThinnedHistorySaysTheSameAsTheCompleteOne(t *testing.T) {
	const before, every = 8 * time.Minute, 3 * time.Second
	for i, f := range slices.Concat(fleets.Incidents(), fleets.Healthy()) {
		if len(f.Members) > 20 {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for _, after := range []time.Duration{24 * time.Second, 105 * time.Second, 4 * time.Minute} {
				said := func(frames []*diagnose.Frame) (all []string) {
					for _, f := range diagnose.Now(frames, diagnose.Live(10*time.Second, before+after)).Findings {
						all = append(all, fmt.Sprint(f.Severity, f.Kind, f.Agents[0].Name, len(f.Agents)))
					}
					slices.Sort(all)
					return all
				}
				frames := func() []*diagnose.Frame { return f.Between(fleets.Begin-before, fleets.Begin+after, every) }
				if diff := cmp.Diff(said(frames()), said(thinned(frames(), rng))); diff != "" {
					t.Errorf("after %v (-complete +thinned):\n%s", after, diff)
				}
			}
		})
	}
}
