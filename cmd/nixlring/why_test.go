// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/lab/golden"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
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

// The other findings of a watch are tested by packages diagnose and fleet.
func TestWhyNamesTheStraggler(t *testing.T) {
	dir := simulating(t, "--no-consumer", "--scenario", "straggler")
	r, v := why(t, procWith(t), dir)
	if diff := cmp.Diff([]diagnose.Kind{diagnose.Straggler, diagnose.NoConsumer}, kinds(v)); diff != "" || r.code != exitError {
		t.Fatalf("%s%+v", diff, r)
	}
	if f := &v.Findings[0]; f.Agents[0].Name != "sim-3" || f.Ratio < 0.05 || f.Ratio > 0.3 {
		t.Errorf("%+v", f)
	}
	if diff := cmp.Diff(verdict{Directory: dir, Agents: 6}, v, cmp.AllowUnexported(verdict{}), cmpopts.IgnoreFields(v, "Seconds", "Findings", "Checks")); diff != "" || v.Seconds < 1 {
		t.Errorf("%v s: %s", v.Seconds, diff)
	}
}

// A healthy fleet must not look like one without a consumer, for example. Simulate consumes its rings after two seconds.
func TestWhyFindsNothingInAHealthyFleet(t *testing.T) {
	dir := simulating(t, "-n", "5")
	must.Eventually(t, func() string {
		if r, v := why(t, procWith(t), dir); r.code != exitOK || len(v.Findings) > 0 || v.Agents != 5 {
			return r.out + r.err
		}
		return ""
	})
}

// A new release of NIXL can have more types of events than this package.
func TestWhyNamesEventsOfUnknownTypes(t *testing.T) {
	dir := t.TempDir()
	w := create(t, filepath.Join(dir, "new"), ringbuf.V4)
	for range 5 {
		must.OK(t, w.Push(ringbuf.Event{Type: 21, Value: 1}))
	}
	r, v := why(t, procWith(t), dir)
	if i := slices.Index(kinds(v), diagnose.EventsUnknown); r.code != exitError || i < 0 || !strings.HasSuffix(v.Findings[i].Evidence[0], ": unknown_event_21 (5)") {
		t.Errorf("%+v", v)
	}
}

func TestWhySaysOnStdoutThatNothingWasFound(t *testing.T) {
	dir := simulating(t, "-n", "5")
	must.Eventually(t, func() string {
		r := runWith(t.Context(), world{now: time.Now, proc: procWith(t), env: quick}, "why", "--for", "1s", dir)
		if r.code != exitOK || r.err != "" || !strings.Contains(r.out, "ound") || !strings.Contains(r.out, "; 5 agents in "+dir+", watched for 1 s\n") {
			return fmt.Sprintf("%+v", r)
		}
		return ""
	})
}

// Scripts must be able to distinguish a problem from a watch that saw nothing.
func TestWhyWithNothingToExamineHasAnExitCodeOfItsOwn(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, r := range map[string]result{
		"no agent":     nixlring(t.Context(), nil, "why", "--for", "100ms", t.TempDir()),
		"no directory": nixlring(t.Context(), nil, "why", filepath.Join(t.TempDir(), "missing")),
		"interrupted":  nixlring(canceled, nil, "why", t.TempDir()),
	} {
		if r.code != exitNoRing || (r.out == "") == (r.err == "") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// A container's own /dev/shm, which processes mode finds, is not a volume.
func TestWhySaysWhichVolumesAreSearched(t *testing.T) {
	r := runWith(t.Context(), world{now: time.Now, proc: procWith(t)}, "why", "--for", "100ms", "--kubelet="+t.TempDir())
	if r.code != exitNoRing || !strings.Contains(r.out, "no agent in the pods of this node is running. NIXL_TELEMETRY_DIR must be on an emptyDir volume") {
		t.Errorf("%+v", r)
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
	r, v := why(t, procWith(t, "NIXL_TELEMETRY_ENABLE=n\x00", "NIXL_TELEMETRY_ENABLE=n\x00", "PATH=/bin\x00", "NIXL_TELEMETRY_ENABLE=y\x00",
		"NIXL_TELEMETRY_ENABLE=y\x00NIXL_TELEMETRY_EXPORTER=buffer\x00"), dir)
	if diff := cmp.Diff([]diagnose.Kind{diagnose.TelemetryDisabled, diagnose.NoTelemetry, diagnose.NoTelemetry}, kinds(v)); diff != "" || r.code != exitError {
		t.Fatalf("%s%+v", diff, r)
	}
	if what := v.Findings[0].What; what != "python3 (2 processes, such as 100) uses NIXL with NIXL_TELEMETRY_ENABLE=n, which breaks vLLM." {
		t.Error(what)
	}
}

// Otherwise, one worker of many with a wrong directory would be missing without a word.
func TestWhyWarnsOfADirectoryThatDoesNotExist(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing")
	const with = "NIXL_TELEMETRY_ENABLE=y\x00NIXL_TELEMETRY_DIR="
	r := runWith(t.Context(), world{now: time.Now, proc: procWith(t, with+missing+"\x00")}, "why", "--for", "1s")
	if want := "/100/root" + missing + ": no such directory; agents don't create it, so create it first\n"; r.code != exitNoRing || !strings.HasSuffix(r.err, want) {
		t.Errorf("%+v", r)
	}
	pushed(t, filepath.Join(dir, "idle"), ringbuf.V4)
	r = runWith(t.Context(), world{now: time.Now, proc: procWith(t, with+missing+"\x00", with+dir+"\x00")}, "why", "--for", "1s")
	if !strings.Contains(r.out, "\nWarning: ") || !strings.Contains(r.out, "/100/root"+missing+": telemetry directory can't be read because it doesn't exist") {
		t.Errorf("%+v", r)
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
		fmt.Fprintf(&got, "== %d agents\n%s", n, findings(group[:n], false))
	}
	golden.Compare(t, *update, "why_findings.txt", got.String())
}
