// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// quick is the environment of agents with a run interval of 10 ms.
func quick(name string) (value string, ok bool) {
	return map[string]string{process.EnvRunInterval: "10"}[name], name == process.EnvRunInterval
}

// why runs nixlring why with a /proc that has some processes, and returns the verdict.
func why(t *testing.T, proc string, args ...string) (result, verdict) {
	t.Helper()
	r := runWith(t.Context(), world{now: time.Now, proc: proc, env: quick}, append([]string{"why", "--for", "1s", "-o", "json"}, args...)...)
	var v verdict
	if err := json.Unmarshal([]byte(r.out), &v); err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	return r, v
}

func kinds(v verdict) (list []diagnose.Kind) {
	for i := range v.Findings {
		list = append(list, v.Findings[i].Kind)
	}
	return list
}

func TestWhyNamesTheStraggler(t *testing.T) {
	dir := simulating(t, "--no-consumer", "--scenario", "straggler")
	r, v := why(t, procWith(t), dir)
	i := slices.IndexFunc(v.Findings, func(f diagnose.Finding) bool { return f.Kind == diagnose.Straggler })
	if i < 0 || r.code != exitError {
		t.Fatalf("%+v", r)
	}
	f := &v.Findings[i]
	if len(f.Agents) != 1 || f.Agents[0].Name != "sim-3" || f.Ratio < 0.05 || f.Ratio > 0.3 {
		t.Errorf("%+v", f)
	}
	if v.Directory != dir || v.Recording != "" || v.Agents != 6 || v.Seconds < 1 {
		t.Errorf("%+v", v)
	}
}

// unjudged returns the reasons of the checks that a verdict doesn't cover, by name.
func unjudged(v verdict) map[string]string {
	reasons := make(map[string]string)
	for _, c := range v.Unjudged {
		reasons[c.Name] = c.Reason
	}
	return reasons
}

// A healthy fleet must not look like one without a consumer, for example. Simulate consumes its rings after two seconds.
func TestWhyFindsNothingInAHealthyFleet(t *testing.T) {
	dir := simulating(t, "-n", "5")
	must.Eventually(t, func() string {
		if r, v := why(t, procWith(t), dir); r.code != exitNoRing || len(v.Findings) > 0 || v.Agents != 5 {
			return r.out + r.err
		}
		return ""
	})
}

func TestWhySaysThatTheConsumerIsUnknown(t *testing.T) {
	r, v := why(t, t.TempDir(), simulating(t, "--no-consumer")) // without a list of locks; several agents may differ within a second
	if r.code != exitNoRing || len(v.Findings) > 0 || len(v.Warnings) != 1 || unjudged(v)["telemetry"] == "" {
		t.Errorf("%+v", r)
	}
}

func TestWhyFindsRingsThatNobodyReads(t *testing.T) {
	r, v := why(t, procWith(t), simulating(t, "--no-consumer", "-n", "2"))
	if got := kinds(v); r.code != exitError || !slices.Equal(got, []diagnose.Kind{diagnose.NoConsumer}) || len(v.Findings[0].Agents) != 2 {
		t.Errorf("%v: %+v", got, r)
	}
	if r, v = why(t, procWith(t), simulating(t, "--no-consumer", "--capacity", "64")); r.code != exitError || !slices.Equal(kinds(v), []diagnose.Kind{diagnose.RingFull}) {
		t.Errorf("%v: %+v", kinds(v), r)
	}
}

func TestWhyWithoutARingHasItsOwnExitCode(t *testing.T) {
	if r, _ := why(t, procWith(t), t.TempDir()); r.code != exitNoRing {
		t.Errorf("%+v", r)
	}
	if r := nixlring(t.Context(), nil, "why", filepath.Join(t.TempDir(), "missing")); r.code != exitError {
		t.Errorf("%+v", r)
	}
	if r := nixlring(t.Context(), nil, "why", t.TempDir(), "--for", "1ms"); r.code != exitUsage {
		t.Errorf("%+v", r)
	}
}

// Rings that exited agents left behind say nothing about the agents, whether they are
// empty or not.
func TestWhyWithoutARunningAgentIsNotWell(t *testing.T) {
	for events := range 2 {
		dir := t.TempDir()
		w, err := ringbuf.Create(filepath.Join(dir, "agent"), ringbuf.V4, 64)
		must.OK(t, err)
		for range events {
			must.OK(t, w.Push(ringbuf.NewEvent(ringbuf.TypeTxBytes, 1)))
		}
		must.OK(t, w.Close())
		r, v := why(t, procWith(t), dir)
		if r.code != exitNoRing || v.Agents != events || v.Exited != events {
			t.Errorf("%d events: %+v: %+v", events, v, r)
		}
		r = nixlring(t.Context(), nil, "why", dir, "--for", "1s")
		if r.code != exitNoRing || !strings.Contains(r.err, "no agent in "+dir+" is running") {
			t.Errorf("%d events: %+v", events, r)
		}
	}
}

// procWith returns a mock of /proc with the host's locks and with processes that have libnixl mapped
// and an environment.
func procWith(t *testing.T, environments ...string) string {
	t.Helper()
	proc := t.TempDir()
	must.OK(t, os.Symlink("/proc/locks", filepath.Join(proc, "locks")))
	for i, env := range environments {
		dir := filepath.Join(proc, strconv.Itoa(100+i))
		must.OK(t, os.MkdirAll(filepath.Join(dir, "ns"), 0o755))
		for name, text := range map[string]string{
			"stat": strconv.Itoa(100+i) + " (python3) S 1 1 1 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 1 0 1234 1 1 1", "statm": "100 10 10 1 0 1 0",
			"status": "Name:\tpython3\nNSpid:\t" + strconv.Itoa(100+i) + "\n", "cgroup": "0::/\n",
			"environ": env, "maps": "7f00-7f01 r-xp 00000000 08:02 17 /usr/lib/libnixl.so\n",
		} {
			must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		must.OK(t, os.Symlink("/usr/bin/python3", filepath.Join(dir, "exe")))
		must.OK(t, os.Symlink("/", filepath.Join(dir, "root")))
		must.OK(t, os.Symlink("mnt:[1]", filepath.Join(dir, "ns", "mnt")))
	}
	return proc
}

// An explicit n breaks vLLM; an unset variable doesn't.
func TestWhyFindsProcessesThatDisableTelemetry(t *testing.T) {
	dir := t.TempDir()
	pushed(t, filepath.Join(dir, "idle"), ringbuf.V4)
	r, v := why(t, procWith(t, "NIXL_TELEMETRY_ENABLE=n\x00", "NIXL_TELEMETRY_ENABLE=n\x00", "PATH=/bin\x00", "NIXL_TELEMETRY_ENABLE=y\x00"), dir)
	if got := kinds(v); r.code != exitError || !slices.Equal(got, []diagnose.Kind{diagnose.TelemetryDisabled, diagnose.NoTelemetry}) {
		t.Fatalf("%v: %+v", got, r)
	}
	if what := v.Findings[0].What; what != "python3 (2 processes, such as 100) uses NIXL with NIXL_TELEMETRY_ENABLE=n, which breaks vLLM." {
		t.Error(what)
	}
}

// A problem of many agents is one paragraph, whose end names the others.
func TestWhyNamesAllAgentsWithTheSameProblem(t *testing.T) {
	group := make([]diagnose.Finding, 22)
	for i := range group {
		group[i] = diagnose.Finding{
			Kind: diagnose.Straggler, Severity: diagnose.Warning, Agents: []diagnose.Identity{{Name: fmt.Sprint("decode-", i)}},
			Short: fmt.Sprintf("straggler: %d%% of peers", i), What: "It is slow.", Evidence: []string{"40 ms each"}, Not: "It isn't the size.", Next: "Check the NIC.",
		}
	}
	var got strings.Builder
	for _, n := range []int{1, 2, 3, 20, 22} {
		fmt.Fprintf(&got, "== %d agents\n%s", n, findings(group[:n]))
	}
	golden(t, "why_findings.txt", got.String())
}

// The rings remember what the agents did before the watch, although it is consumed.
func TestWhyRightAfterAllAgentsStoppedSaysThatTheyDidTransfer(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		path := filepath.Join(dir, fmt.Sprint("agent-", i))
		pushed(t, path, ringbuf.V4, transferred(1<<20, time.Millisecond, 0, time.Now()), transferred(1<<20, time.Millisecond, 0, time.Now()))
		consumer, err := ringbuf.OpenReader(path, ringbuf.Consume)
		must.OK(t, err)
		defer consumer.Close()
		_, err = consumer.Read(0, func(ringbuf.Batch) {})
		must.OK(t, err)
		must.OK(t, consumer.Commit())
	}
	r, v := why(t, procWith(t), dir)
	if got := unjudged(v)["progress"]; r.code != exitNoRing || got != "no agent completed a transfer, although 3 did before" {
		t.Errorf("%q: %+v", got, r)
	}
}
