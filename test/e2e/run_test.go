// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
	"github.com/nixl-otel/nixl-otel/test/internal/making"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// makeTarget starts `make run` or `make demo` with some variables, in a copy of the tree with the programs under test.
func makeTarget(t *testing.T, tmp, target string, variables ...string) *proc.Process {
	t.Helper()
	return making.Start(t, tmp, map[string]string{"dist/otelcol-nixl": built.Collector, "bin/nixlring": built.Nixlring},
		[]string{"build", "nixlring"}, append([]string{target}, variables...)...)
}

// After Ctrl-C, no processes or files are left.
func TestMakeRunServesSimulatedAgentsUntilCtrlC(t *testing.T) {
	t.Parallel()
	tmp, port := t.TempDir(), proc.FreePort(t)
	p := makeTarget(t, tmp, "run", "SCENARIO=straggler", "SIMULATE=5", fmt.Sprintf("PORT=%d", port))
	p.WaitLine(t, p.Stdout, "the page's address", contains(fmt.Sprintf("http://127.0.0.1:%d/metrics", port)))
	must.Eventually(t, func() string {
		return pageHas(t, port, "nixl_transfer_throughput_bytes_per_second_count", `nixl_agent_name="sim-4"`)
	})
	endByCtrlC(t, p, port, tmp)
	if text := p.Stdout.Text() + p.Stderr.Text(); !strings.Contains(text, "transfers/s per agent") {
		t.Errorf("the simulator doesn't print its totals:\n%s", text)
	}
}

// The output lists the rings, or explains what to set for an agent and how to simulate agents. A new ring is
// discovered.
func TestMakeRunDescribesADirectory(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]func(dir string) []string{
		"with rings": func(dir string) []string {
			ringtest.CopyTo(t, ringtest.Find(t, "0.6.0/alltypes_cap64"), filepath.Join(dir, "old"))
			return []string{filepath.Join(dir, "old") + " ", "v1"}
		},
		"empty": func(dir string) []string {
			return []string{"no ring in " + dir, "NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR=" + dir, "make run SIMULATE=4"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tmp, dir, port := t.TempDir(), t.TempDir(), proc.FreePort(t)
			want := says(dir)
			p := makeTarget(t, tmp, "run", "DIR="+dir, fmt.Sprintf("PORT=%d", port))
			p.WaitLine(t, p.Stdout, "the page's address", contains(fmt.Sprintf("http://127.0.0.1:%d/metrics", port)))
			text := p.Stdout.Text() + "\n" + p.Stderr.Text()
			for _, part := range want {
				if !strings.Contains(text, part) {
					t.Errorf("the output doesn't contain %q:\n%s", part, text)
				}
			}
			newAgent(t, dir, "late").transfer(t, 10)
			must.Eventually(t, func() string { return pageHas(t, port, "nixl_transfer_io_bytes_total", `nixl_agent_name="late"`) })
			endByCtrlC(t, p, port, tmp)
		})
	}
}

// Nothing is started then.
func TestMakeRejectsInvalidVariables(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.OK(t, err)
	t.Cleanup(func() { _ = l.Close() }) // after the subtests
	_, taken, err := net.SplitHostPort(l.Addr().String())
	must.OK(t, err)
	missing := filepath.Join(t.TempDir(), "missing")
	for name, c := range map[string]struct {
		target    string
		variables []string
		says      string
	}{
		"port is taken":         {"run", []string{"PORT=" + taken, "SIMULATE=1"}, "port " + taken + " on 127.0.0.1 is taken"},
		"port is no number":     {"run", []string{"PORT=http"}, "PORT=http is not a port"},
		"directory missing":     {"run", []string{"DIR=" + missing, "PORT=" + fmt.Sprint(proc.FreePort(t))}, "there is no directory " + missing},
		"directory is a file":   {"run", []string{"DIR=/etc/passwd", "PORT=" + fmt.Sprint(proc.FreePort(t))}, "/etc/passwd is not a directory; set DIR"},
		"number of agents":      {"run", []string{"SIMULATE=many"}, "SIMULATE=many is not a number of agents"},
		"directory of agents":   {"run", []string{"SIMULATE=1", "DIR=" + missing}, "set DIR or SIMULATE, not both"},
		"directory of scenario": {"run", []string{"SCENARIO=steady", "DIR=" + missing}, "set DIR or SIMULATE, not both"},
		"unknown scenario":      {"run", []string{"SCENARIO=peace", "PORT=" + fmt.Sprint(proc.FreePort(t))}, `unknown scenario "peace"`},
		"agents of the demo":    {"demo", []string{"AGENTS=0"}, "AGENTS=0 is not a number of agents"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tmp := t.TempDir()
			p := makeTarget(t, tmp, c.target, c.variables...)
			if code := p.Wait(t); code != 2 { // make's own, for a recipe that failed
				t.Errorf("exit code %d, want 2", code)
			}
			if !strings.Contains(p.Stderr.Text(), "make "+c.target+": ") || !strings.Contains(p.Stderr.Text(), c.says) {
				t.Errorf("the output doesn't contain %q:\n%s", c.says, p.Stderr.Text())
			}
			making.NothingLeft(t, p, tmp)
		})
	}
}

// endByCtrlC ends a run like Ctrl-C in a terminal, and checks that nothing is left.
func endByCtrlC(t *testing.T, p *proc.Process, port int, tmp string) {
	t.Helper()
	if len(proc.Session(p.PID())) < 2 {
		t.Error("make has started nothing")
	}
	p.SignalGroup(t, syscall.SIGINT)
	p.Wait(t) // with any exit code: by the signal, or of its recipe
	p.WaitLine(t, p.Stderr, "Shutdown complete", contains("Shutdown complete"))
	if _, err := get(t, port); err == nil {
		t.Error("the page is still served")
	}
	making.NothingLeft(t, p, tmp)
}

func contains(text string) func(line string) bool {
	return func(line string) bool { return strings.Contains(line, text) }
}
