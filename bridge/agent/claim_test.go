// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent_test

import (
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/bridge/sink"
)

// waysOf returns the option for each way to report.
func waysOf(t *testing.T) map[string]agent.Option {
	t.Helper()
	return map[string]agent.Option{
		"ring":     agent.WithRing(agent.Ring{Dir: t.TempDir()}),
		"Producer": agent.WithProducer(agent.NewProducer()),
		"sinks":    agent.WithSinks(sink.Func(func([]sink.Event) error { return nil })),
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

// A ring and a Producer with the same agent name would be counted twice, even if
// two Agents report to them.
func TestOneNameCannotReportToARingAndAProducer(t *testing.T) {
	ways := waysOf(t)
	for _, c := range []struct {
		first, second string
		wantErr       string // empty for no error
	}{
		{"ring", "Producer", "agent a: an open agent of this process reports this name through a ring"},
		{"Producer", "ring", "agent a: an open agent of this process reports this name through a Producer"},
		{"Producer", "Producer", ""},
		{"sinks", "ring", ""},
		{"sinks", "Producer", ""},
	} {
		t.Run(c.first+" and "+c.second, func(t *testing.T) {
			first, err := agent.New("a", ways[c.first])
			if err != nil {
				t.Fatal(err)
			}
			second, err := agent.New("a", ways[c.second])
			switch {
			case err == nil && c.wantErr != "":
				t.Error("no error")
			case err != nil && (c.wantErr == "" || !strings.Contains(err.Error(), c.wantErr)):
				t.Errorf("error %v", err)
			}
			other, err := agent.New("b", ways[c.second])
			if err != nil {
				t.Errorf("another name: %v", err)
			}
			for _, a := range []*agent.Agent{first, second, other} {
				closeAgent(t, a)
			}
			again, err := agent.New("a", ways[c.second])
			if err != nil {
				t.Fatalf("after Close: %v", err)
			}
			closeAgent(t, again)
		})
	}
}

func TestNameIsFreeAfterNewFailed(t *testing.T) {
	if _, err := agent.New("a", agent.WithRing(agent.Ring{Dir: "/nonexistent"})); err == nil {
		t.Fatal("no error")
	}
	a, err := agent.New("a", agent.WithProducer(agent.NewProducer()))
	if err != nil {
		t.Fatal(err)
	}
	closeAgent(t, a)
}
