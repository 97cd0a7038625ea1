// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/internal/must"
)

// waysOf returns the option for each way to report.
func waysOf(t *testing.T) map[string]agent.Option {
	t.Helper()
	return map[string]agent.Option{
		"ring":                  agent.WithRing(t.TempDir()),
		"another ring":          agent.WithRing(t.TempDir()),
		"MeterProvider":         agent.WithMeterProvider(newBackend().provider),
		"another MeterProvider": agent.WithMeterProvider(newBackend().provider),
	}
}

func TestInvalidFileNameIsRejected(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", "../a", "a\x00b"} {
		for way, o := range waysOf(t) {
			a, err := agent.New(name, o)
			if err == nil {
				closeAgent(t, a)
			}
			if err == nil || !strings.Contains(err.Error(), "must be a file name") {
				t.Errorf("New(%q) with %s: error %v", name, way, err)
			}
		}
		if _, err := agent.ResourceAttributes(name, ""); err == nil || !strings.Contains(err.Error(), "must be a file name") {
			t.Errorf("ResourceAttributes(%q): error %v", name, err)
		}
	}
}

func TestRingTogetherWithAMeterProviderIsRejected(t *testing.T) {
	_, err := agent.New("a", agent.WithRing(t.TempDir()), agent.WithMeterProvider(newBackend().provider))
	if err == nil || !strings.Contains(err.Error(), "agent a: WithRing and WithMeterProvider can't be combined") {
		t.Errorf("error %v", err)
	}
}

// Values of two agents with the same series would mix, and a backend would count twice
// what both a ring and a MeterProvider report.
func TestOpenAgentsDoNotShareNamesAndSeries(t *testing.T) {
	ways := waysOf(t)
	for _, c := range []struct {
		first, second string
		wantErr       string // empty for no error
	}{
		{"ring", "MeterProvider", "agent a: an open agent of this process reports this name through a ring"},
		{"MeterProvider", "ring", "agent a: an open agent of this process reports this name through a MeterProvider"},
		{"MeterProvider", "MeterProvider", "agent a: the open agent a of this process reports the same series through the same MeterProvider"},
		{"MeterProvider", "another MeterProvider", ""},
		{"ring", "ring", "the open agent a of this process writes to it as "},
		{"ring", "another ring", ""},
	} {
		t.Run(c.first+" and "+c.second, func(t *testing.T) {
			first := newAgent(t, "a", ways[c.first])
			second, err := agent.New("a", ways[c.second])
			switch {
			case err == nil && c.wantErr != "":
				t.Error("no error")
			case err != nil && (c.wantErr == "" || !strings.Contains(err.Error(), c.wantErr)):
				t.Errorf("error %v", err)
			}
			other := newAgent(t, "b", ways[c.second])
			for _, a := range []*agent.Agent{first, second, other} {
				closeAgent(t, a)
			}
			closeAgent(t, newAgent(t, "a", ways[c.second]))
		})
	}
}

// Without their names, two agents have the same series.
func TestOnlyOneOpenAgentHasItsNameInTheResource(t *testing.T) {
	b := newBackend()
	b.named(t, "one", agent.WithNameInResource())
	b.named(t, "two")
	_, err := agent.New("three", agent.WithNameInResource(), agent.WithMeterProvider(b.provider))
	if err == nil || !strings.Contains(err.Error(), "agent three: the open agent one of this process reports the same series") {
		t.Errorf("error %v", err)
	}
}

// A ring has one writer, however its path is spelled.
func TestOpenAgentsDoNotShareARing(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	first := newRingAgent(t, dir, "a")
	first.MemoryRegistered(ctx, 1)
	flush(t, first)
	must.OK(t, os.Symlink(dir, filepath.Join(other, "link")))
	must.OK(t, os.Link(filepath.Join(dir, "a"), filepath.Join(other, "b")))
	t.Chdir(dir)
	for spelling, c := range map[string]struct{ dir, name string }{
		"the same":          {dir, "a"},
		"relative":          {".", "a"},
		"with dots":         {dir + "/../" + filepath.Base(dir) + "//", "a"},
		"symbolic link":     {filepath.Join(other, "link"), "a"},
		"hard link, name b": {other, "b"},
	} {
		t.Run(spelling, func(t *testing.T) {
			a, err := agent.New(c.name, agent.WithRing(c.dir))
			if err == nil {
				closeAgent(t, a)
			}
			want := "the open agent a of this process writes to it as " + filepath.Join(dir, "a")
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one with %q", err, want)
			}
		})
	}
	if got := events(t, dir, "a"); len(got) != 1 {
		t.Errorf("the first agent's ring has %d events, want 1", len(got))
	}
	closeAgent(t, first)
	closeAgent(t, newRingAgent(t, filepath.Join(other, "link"), "a"))
}

func TestNameIsFreeAfterNewFailed(t *testing.T) {
	if _, err := agent.New("a", agent.WithRing("/nonexistent")); err == nil {
		t.Fatal("no error")
	}
	newBackend().agent(t)
}
