// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/diagnose/fleets"
)

// held returns what an hour's watch finds that has held for as long as the alerts require.
func held(samples []*diagnose.Frame) []diagnose.Finding {
	list := diagnose.Now(samples, diagnose.Rules()).Findings
	for _, ago := range []time.Duration{time.Minute, 2 * time.Minute} {
		before := make(map[diagnose.Key]bool)
		if n := len(samples) - int(ago/fleets.Every); n > 0 {
			for _, f := range diagnose.Now(samples[:n], diagnose.Rules()).Findings {
				before[f.Key()] = true
			}
		}
		list = slices.DeleteFunc(list, func(f diagnose.Finding) bool { return !before[f.Key()] })
	}
	return list
}

// found returns the findings of samples as the table has them.
func found(list []diagnose.Finding) (all []fleets.Want) {
	for _, f := range list {
		w := fleets.Want{Kind: f.Kind}
		if !f.OfJob() {
			w.Agent = f.Agents[0].Name
		}
		all = append(all, w)
	}
	return all
}

func TestEachIncidentIsNamedWithinTenMinutes(t *testing.T) {
	for _, f := range slices.Concat(fleets.Incidents(), fleets.Strangers()) {
		if len(f.Want) == 0 {
			continue // only the alerts can know
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			samples := f.Frames()
			list := held(samples)
			got := found(list)
			slices.SortFunc(got, func(a, b fleets.Want) int { return strings.Compare(a.Agent, b.Agent) })
			slices.SortFunc(f.Want, func(a, b fleets.Want) int { return strings.Compare(a.Agent, b.Agent) })
			if !slices.Equal(got, f.Want) {
				t.Errorf("found %v, want %v; %s", got, f.Want, f.Why)
			}
			for _, finding := range list {
				if slices.Contains([]string{finding.What, finding.Next, finding.Short, finding.Not}, "") || finding.Evidence == nil {
					t.Errorf("incomplete: %+v", finding)
				}
			}
		})
	}
}

// Visitors pass, so they must be named while they last, and nobody else may be.
func TestEachVisitorIsNamedWhileItLasts(t *testing.T) {
	for _, f := range fleets.Visitors() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			samples, missing := f.Frames(), slices.Clone(f.Want)
			begin, within := int(fleets.Begin/fleets.Every), int(max(f.Within, fleets.Found-fleets.Begin)/fleets.Every)
			for i := begin; i < min(begin+within+1, len(samples)); i += int(time.Minute / fleets.Every) {
				list := held(samples[:i+1])
				got := found(list)
				missing = slices.DeleteFunc(missing, func(w fleets.Want) bool { return slices.Contains(got, w) })
				for _, finding := range list {
					other := slices.ContainsFunc(finding.Agents, func(a diagnose.Identity) bool { return !affected(&f, a) })
					if finding.Severity.AtLeast(diagnose.Warning) && other {
						t.Errorf("at %v, it isn't about all of these: %s", samples[i].Time.Sub(samples[0].Time), finding.What)
					}
				}
			}
			if len(missing) > 0 {
				t.Errorf("%v isn't found; %s", missing, f.Why)
			}
		})
	}
}

// eachMinute calls check with what is known of each healthy fleet after every minute.
func eachMinute(t *testing.T, check func(t *testing.T, f *fleets.Fleet, samples []*diagnose.Frame)) {
	t.Helper()
	for _, f := range slices.Concat(fleets.Healthy(), fleets.HealthyStrangers(), fleets.HealthyVisitors()) {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			samples := f.Frames()
			step := int(time.Minute / fleets.Every)
			if len(f.Members) > 100 {
				step *= 10
			}
			for i := step + 1; i <= len(samples); i += step { // forward, as tools do
				check(t, &f, samples[:i])
			}
		})
	}
}

func TestNothingIsWrongWithHealthyFleets(t *testing.T) {
	eachMinute(t, func(t *testing.T, f *fleets.Fleet, samples []*diagnose.Frame) {
		most := diagnose.Info
		if f.Warns {
			most = diagnose.Warning
		}
		if list := held(samples); len(list) > 0 && !most.AtLeast(list[0].Severity) {
			t.Fatalf("at %v: %v: %s %v", samples[len(samples)-1].Time.Sub(samples[0].Time), found(list), list[0].What, list[0].Evidence)
		}
	})
}

func TestFrameFindsAgentsByID(t *testing.T) {
	f := &diagnose.Frame{Agents: []diagnose.Agent{{Identity: diagnose.Identity{ID: "b"}}, {Identity: diagnose.Identity{ID: "d"}}}}
	for id, want := range map[string]*diagnose.Agent{"a": nil, "b": &f.Agents[0], "c": nil, "d": &f.Agents[1], "e": nil} {
		if got := f.Agent(id); got != want {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
}

func TestEachKindHasAPlace(t *testing.T) {
	kinds, seen := diagnose.Kinds(), make(map[diagnose.Kind]bool)
	for _, k := range kinds {
		if seen[k] {
			t.Errorf("%s is there twice", k)
		}
		seen[k] = true
	}
	if len(kinds) != 21 || kinds[0] != diagnose.JobStalled || !seen[diagnose.NoTelemetry] {
		t.Errorf("%d kinds: %v", len(kinds), kinds)
	}
}

func TestFindingOfAnAlertIsAboutAJobIfItHasSeveralAgents(t *testing.T) {
	agents := []diagnose.Identity{{Name: "a", Host: "node-1"}, {Name: "b"}}
	for n, ofJob := range []bool{false, false, true} {
		f := diagnose.Alerted("NIXLErrors", diagnose.Critical, agents[:n], "what", "evidence", "next")
		if f.OfJob() != ofJob || (len(f.Commands) > 0) != (n > 0) || f.Kind != "NIXLErrors" {
			t.Errorf("of %d agents: %+v", n, f)
		}
	}
}

func TestSeveritiesHaveAnOrder(t *testing.T) {
	order := []diagnose.Severity{diagnose.Info, diagnose.Warning, diagnose.Critical}
	for i, s := range order {
		for n, other := range order {
			if s.AtLeast(other) != (i >= n) {
				t.Errorf("%s is at least %s: %v", s, other, s.AtLeast(other))
			}
		}
	}
}

// A watch of an hour knows all that the rules need but the last day.
func TestWindowsOfWatches(t *testing.T) {
	rules := diagnose.Rules()
	if got := diagnose.Watch(time.Hour); got != rules {
		t.Errorf("an hour: %+v", got)
	}
	if got := diagnose.Watch(time.Hour - 1); got.Long != rules.Window || got.Longer != rules.Window || got.Silent != rules.Silent {
		t.Errorf("nearly an hour: %+v", got)
	}
	want := rules
	want.Window, want.Longer, want.Long, want.Before = 10*time.Second, 10*time.Second, 10*time.Second, 10*time.Second
	want.Silent, want.Again, want.Apart = 5*time.Second, 5*time.Second, 5*time.Second
	want.Short, want.Regular = 4*time.Second, 4*time.Second
	if d := cmp.Diff(want, diagnose.Watch(10*time.Second)); d != "" {
		t.Errorf("ten seconds (-want +got):\n%s", d)
	}
	want = diagnose.Watch(2 * time.Minute)
	want.Window, want.Silent, want.Past, want.Step, want.Gap, want.Usual = 10*time.Second, 30*time.Second, time.Hour, 30*time.Second, time.Minute, 0.9
	if d := cmp.Diff(want, diagnose.Live(10*time.Second, time.Hour)); d != "" {
		t.Errorf("a page (-want +got):\n%s", d)
	}
}

func TestHeadline(t *testing.T) {
	well, not := diagnose.Check{Well: true}, diagnose.Check{}
	for _, tt := range []struct {
		found  []diagnose.Finding
		checks []diagnose.Check
		still  string
		want   string
	}{
		{nil, nil, "", "No data"},
		{nil, []diagnose.Check{well}, "", "Nothing found"},
		{nil, []diagnose.Check{well, not}, "", "No problem found in what could be compared"},
		{make([]diagnose.Finding, 1), []diagnose.Check{well, not}, "", "No problem found, but something to know"},
		{make([]diagnose.Finding, 1), []diagnose.Check{well}, "no agent completed a transfer", "Nothing moves: no agent completed a transfer"},
	} {
		if got := diagnose.Headline(tt.found, tt.checks, tt.still); got != tt.want {
			t.Errorf("%d findings, %v, %q: %q, want %q", len(tt.found), tt.checks, tt.still, got, tt.want)
		}
	}
}

// A ring holds one event less than it has slots.
func TestFillOfARing(t *testing.T) {
	for ring, want := range map[diagnose.Ring]float64{{}: 0, {Capacity: 1, Peak: 1}: 0, {Capacity: 2, Peak: 1}: 1, {Capacity: 3, Peak: 1}: 0.5, {Capacity: 5, Peak: 9}: 1} {
		if got := (&diagnose.Agent{Ring: &ring}).Fill(); got != want {
			t.Errorf("%+v is filled to %v, want %v", ring, got, want)
		}
	}
}

// incident returns the frames of an incident, and what must be found.
func incident(t *testing.T, name string) ([]*diagnose.Frame, []fleets.Want) {
	t.Helper()
	for _, f := range fleets.Incidents() {
		if f.Name == name {
			return f.Frames(), f.Want
		}
	}
	t.Fatalf("no incident %q", name)
	return nil, nil
}

// Of the past, a tool says what the alerts said, and since when it held.
func TestFindingsOfThePastHaveHeldForTwoMinutes(t *testing.T) {
	samples, want := incident(t, "an agent at a tenth of the speed")
	begin := samples[0].Time.Add(fleets.Begin)
	for after, since := range map[time.Duration]time.Duration{105 * time.Second: -1, 2 * time.Minute: 0, 150 * time.Second: 30 * time.Second, 8 * time.Minute: 0} {
		list := diagnose.Held(samples[:int((fleets.Begin+after)/fleets.Every)+1], diagnose.Rules()).Findings
		if since < 0 {
			if len(list) > 0 {
				t.Errorf("after %v: %+v", after, list)
			}
		} else if len(list) != 1 || found(list)[0] != want[0] || !list[0].Since.Equal(begin.Add(since)) {
			t.Errorf("after %v: %+v, want %v since %v", after, list, want, begin.Add(since))
		}
	}
	if r := diagnose.Held(nil, diagnose.Rules()); len(r.Findings)+len(r.Checks) > 0 {
		t.Errorf("without frames: %+v", r)
	}
}

func TestWhatHeldInAllFramesOfThePastBeganWithThem(t *testing.T) {
	var frames []*diagnose.Frame
	for i := range 11 {
		full := diagnose.Agent{Identity: diagnose.Identity{ID: "a"}, Up: diagnose.Yes, Ring: &diagnose.Ring{Capacity: 100, Peak: 98, ConsumerUnknown: true}}
		frames = append(frames, &diagnose.Frame{Time: time.Unix(int64(30*i), 0), Agents: []diagnose.Agent{full}})
	}
	list := diagnose.Held(frames, diagnose.Watch(5*time.Minute)).Findings
	if len(list) != 1 || list[0].Kind != diagnose.NearlyFull || !list[0].Since.Equal(frames[0].Time) {
		t.Errorf("%+v, want a ring that is nearly full since %v", list, frames[0].Time)
	}
}

// A finding began when it was first seen, or when it says.
func TestFindingsOfAWatchBeganInIt(t *testing.T) {
	samples, _ := incident(t, "an agent at a tenth of the speed")
	at := int(fleets.Begin / fleets.Every)
	r := diagnose.Watched(samples[at-4:at+9], diagnose.Watch(3*time.Minute))
	if len(r.Findings) != 1 || !r.Findings[0].Since.Equal(samples[at].Time) {
		t.Errorf("%+v, want since %v", r.Findings, samples[at].Time)
	}
	if began := r.Begun(samples[at+9].Time, map[diagnose.Key]time.Time{r.Findings[0].Key(): samples[0].Time}); !began[r.Findings[0].Key()].Equal(samples[at].Time) {
		t.Errorf("%v, want what it says", began)
	}
}

// Nobody should look at the NIC of an agent that is slow because it posts slowly.
func TestSlowPostingIsNotBlamedOnTheNetwork(t *testing.T) {
	for name, nic := range map[string]bool{"posting takes ten times as long on one host": false, "an agent at a tenth of the speed": true} {
		frames, _ := incident(t, name)
		for _, finding := range diagnose.Now(frames, diagnose.Rules()).Findings {
			if strings.Contains(finding.Next, "NIC") != nic {
				t.Errorf("%s: %s %s", name, finding.What, finding.Next)
			}
		}
	}
}

// Between updates of weights, an agent still completes transfers that are far smaller than those.
func TestSmallTransfersAreNotDenied(t *testing.T) {
	for _, f := range fleets.HealthyStrangers() {
		if f.Name != "weight updates of reinforcement learning" {
			continue
		}
		list := diagnose.Now(f.Between(0, 23*time.Minute, fleets.Every), diagnose.Rules()).Findings
		if len(list) != 1 || !strings.Contains(list[0].What, "completed a transfer of the usual size") {
			t.Errorf("%+v", list)
		}
	}
}

// Of an agent with few transfers, one that takes far longer is evidence. An agent alone has no peers.
func TestFindingsAboutOneTransferAndOneAgentAreInTheSingular(t *testing.T) {
	var frames []*diagnose.Frame
	var sum diagnose.Moved
	for minute := range 46 {
		took := 1.0
		if minute == 40 {
			took = 60
		}
		if minute < 30 || minute == 40 {
			sum.Bytes, sum.Transfers, sum.Seconds = sum.Bytes+4<<20, sum.Transfers+1, sum.Seconds+took
		}
		frames = append(frames, &diagnose.Frame{Time: time.Unix(int64(60*minute), 0), Agents: []diagnose.Agent{{Identity: diagnose.Identity{Name: "decode-0", Job: diagnose.Job{Service: "decode"}}, Up: diagnose.Yes, Moved: [2]diagnose.Moved{sum}}}})
	}
	var got []string
	for _, f := range diagnose.Now(frames, diagnose.Rules()).Findings {
		got = append(got, f.Short+": "+f.What, strings.Join(f.Evidence, "; "), f.Not)
	}
	want := []string{
		"2% of its past speed: decode-0, the only agent of decode that could be compared, moves data at 2% of its past speed.",
		"1 transfer of 4.00 MiB, 60.0 s, 69.9 kB/s; expected from before, at this size and load: 1.00 s each, 4.19 MB/s",
		"It isn't a change of the size of its transfers, nor an effect of a higher load.",
		"no transfer for 5 m: No agent of decode completed a transfer, although one did before.", "",
		"It needn't be a problem: if no requests arrive, this is normal.",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
