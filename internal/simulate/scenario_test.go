package simulate

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBurstsAreReversible(t *testing.T) {
	b := Bursts{Phase: Phase{Every: 10 * time.Second, For: 2 * time.Second}, Factor: 20}
	for up := time.Duration(0); up < 45*time.Second; up += 37 * time.Millisecond {
		if got := b.when(b.worked(up)); (got - up).Abs() > time.Microsecond {
			t.Fatalf("%v became %v", up, got)
		}
	}
	if got := b.worked(10 * time.Second); got != 48*time.Second {
		t.Errorf("a period does the work of %v", got)
	}
	if got := (Bursts{}).worked(time.Hour); got != time.Hour {
		t.Errorf("no bursts: %v", got)
	}
}

func TestPhasesAndBurstsAreChecked(t *testing.T) {
	long := Phase{Every: time.Second, For: 2 * time.Second}
	for name, change := range map[string]func(*Config){
		"longer than its period": func(c *Config) { c.Bursts = Bursts{Phase: long, Factor: 2} },
		"factor below 1":         func(c *Config) { c.Bursts = Bursts{Phase: Phase{Every: 2, For: 1}, Factor: 0.5} },
		"factor not a number":    func(c *Config) { c.Bursts = Bursts{Phase: Phase{Every: 2, For: 1}, Factor: math.NaN()} },
		"too high a rate":        func(c *Config) { c.Bursts = Bursts{Phase: Phase{Every: 2, For: 1}, Factor: MaxRate} },
		"long outage":            func(c *Config) { c.Traffic = KVCache(); c.Traffic.Outages = long },
		"share above 1":          func(c *Config) { c.Traffic = KVCache(); c.Traffic.OutageShare = 2 },
	} {
		c := Config{Path: "x", Rate: 100}
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// play lets a scenario's fleet run for some seconds of its timeline, and says
// what each second had.
func play(t *testing.T, name string, seconds int) (*Fleet, []Totals) {
	t.Helper()
	s, err := FindScenario(name)
	if err != nil {
		t.Fatal(err)
	}
	cfg := FleetConfig{Dir: t.TempDir(), Prefix: "sim", Agents: 1, Capacity: 1 << 14}
	cfg.Agent.Traffic, cfg.Agent.Seed = KVCache(), 1
	s.Set(&cfg)
	f, err := NewFleet(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Start(); err != nil {
		t.Fatal(err)
	}
	var each []Totals
	for range seconds {
		for range 10 {
			if err := f.Interval(); err != nil {
				t.Fatal(err)
			}
		}
		each = append(each, f.Report().Sum)
	}
	if err := f.Stop(); err != nil {
		t.Fatal(err)
	}
	for i := len(each) - 1; i > 0; i-- {
		each[i].Operations -= each[i-1].Operations
		each[i].Failed -= each[i-1].Failed
	}
	return f, each
}

func TestBurstScenario(t *testing.T) {
	_, each := play(t, "burst", 22)
	for i, s := range each {
		want := uint64(50)
		if i%10 >= 8 {
			want = 1000
		}
		if s.Operations < want-1 || s.Operations > want+1 {
			t.Errorf("second %d has %d operations, not %d", i, s.Operations, want)
		}
	}
}

func TestFailingPeerScenario(t *testing.T) {
	f, each := play(t, "failing-peer", 40)
	for i, s := range each {
		down := i%20 >= 15
		if down != (s.Failed > 50) || s.Operations < 99 || s.Operations > 101 {
			t.Errorf("second %d has %d operations of which %d failed", i, s.Operations, s.Failed)
		}
	}
	if errs := f.Report().Sum.Written.Errors; errs["remote_disconnect"] < 600 {
		t.Errorf("errors: %v", errs)
	}
}

// However short a life is, it shows what its scenario is about.
func TestShortScenarios(t *testing.T) {
	for _, d := range []time.Duration{time.Second, 3 * time.Second, 15 * time.Second} {
		for name, phase := range map[string]func(*FleetConfig) Phase{
			"failing-peer": func(c *FleetConfig) Phase { return c.Agent.Traffic.Outages },
			"burst":        func(c *FleetConfig) Phase { return c.Agent.Bursts.Phase },
		} {
			s, err := FindScenario(name)
			if err != nil {
				t.Fatal(err)
			}
			cfg := FleetConfig{}
			cfg.Agent.Duration = d
			s.Set(&cfg)
			if p := phase(&cfg); p.Every > d || p.validate() != nil || p.inside(d/2) || !p.inside(min(p.Every, d)-time.Millisecond) {
				t.Errorf("%s of %v: %+v", name, d, p)
			}
		}
	}
}

func TestPrefillDecodeScenario(t *testing.T) {
	f, _ := play(t, "prefill-decode", 5)
	var names []string
	totals := map[string]Totals{}
	for path, totalsOf := range f.Report().Agents {
		name := filepath.Base(path)
		names = append(names, name)
		totals[name] = totalsOf
	}
	if len(names) != 2 || !strings.HasSuffix(f.Agents()[0].Path(), "/prefill-0") || !strings.HasSuffix(f.Agents()[1].Path(), "/decode-0") {
		t.Fatalf("agents: %v", names)
	}
	prefill, decode := totals["prefill-0"], totals["decode-0"]
	if prefill.Written.Receive.Bytes != 0 || prefill.Operations != 500 || decode.Operations != 1500 ||
		decode.Written.Receive.Requests < 10*decode.Written.Transmit.Requests ||
		prefill.Written.Transmit.Bytes < 2*decode.Written.Receive.Bytes {
		t.Errorf("prefill %+v, decode %+v", prefill.Written.Transmit, decode.Written.Receive)
	}
}

func TestOverflowScenario(t *testing.T) {
	f, _ := play(t, "overflow", 3)
	sum := f.Report().Sum
	if sum.Capacity != 512 || sum.DroppedStaging.Events == 0 || sum.DroppedRing.Events == 0 || sum.Dropped() < 3*sum.Written.Events.Events {
		t.Errorf("written %d, dropped %d", sum.Written.Events.Events, sum.Dropped())
	}
}

func TestSteadyScenarioIsTheDefault(t *testing.T) {
	_, each := play(t, "steady", 10)
	for i, s := range each {
		if s.Operations != 100 {
			t.Errorf("second %d has %d operations", i, s.Operations)
		}
	}
}

func TestScenariosByName(t *testing.T) {
	var names []string
	for _, s := range Scenarios() {
		names = append(names, s.Name)
		if s.Does == "" {
			t.Errorf("%s says nothing", s.Name)
		}
	}
	if diff := cmp.Diff([]string{"steady", "burst", "prefill-decode", "failing-peer", "overflow"}, names); diff != "" {
		t.Error(diff)
	}
	if _, err := FindScenario("peace"); err == nil || !strings.Contains(err.Error(), "steady, burst, prefill-decode") {
		t.Error(err)
	}
}
