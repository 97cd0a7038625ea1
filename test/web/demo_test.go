// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package web

import (
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/test/internal/browser"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
	"github.com/nixl-otel/nixl-otel/test/internal/making"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// makeDemo starts `make demo` with variables.
func makeDemo(t *testing.T, tmp string, variables ...string) *proc.Process {
	t.Helper()
	programs := map[string]string{"bin/nixlring": built.Path(t, "NIXLRING")}
	return making.Start(t, tmp, programs, []string{"nixlring"}, append([]string{"demo"}, variables...)...)
}

// addressOf waits until a process prints the address of the page.
func addressOf(t *testing.T, p *proc.Process) string {
	t.Helper()
	pattern := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`)
	return pattern.FindString(p.WaitLine(t, p.Stdout, "the address of the page", pattern.MatchString))
}

// The test does what a new user does: run one command, open the page, press Ctrl-C. Two demos at
// the same time don't disturb each other.
func TestDemo(t *testing.T) {
	chromium := built.Path(t, "CHROMIUM")
	for range 2 {
		tmp := t.TempDir()
		p := makeDemo(t, tmp, "AGENTS=5")
		t.Run("demo", func(t *testing.T) {
			t.Parallel()
			address := addressOf(t, p)
			page := browser.Open(t, chromium, 1280, 720)
			page.Go(t, address)
			awaitHeadline(t, page, `^worker-2 (moves|reads|writes) data at \d+% of the speed of its peers`)
			p.SignalGroup(t, syscall.SIGINT)
			p.Wait(t) // the signal or the exit code of the recipe may end make
			if request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil); err != nil {
				t.Error(err)
			} else if r, err := http.DefaultClient.Do(request); err == nil {
				t.Error("the page is still served")
				_ = r.Body.Close()
			}
			making.NothingLeft(t, p, tmp)
		})
	}
}

func TestDemoRejectsInvalidVariablesAndStartsNothing(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.OK(t, err)
	defer l.Close()
	_, taken, err := net.SplitHostPort(l.Addr().String())
	must.OK(t, err)
	for name, c := range map[string]struct {
		variable, message string
	}{
		"port is taken":    {"PORT=" + taken, "make demo: port " + taken + " on 127.0.0.1 is taken"},
		"invalid port":     {"PORT=http", "make demo: PORT=http is not a port"},
		"no agents":        {"AGENTS=0", "make demo: AGENTS=0 is not a number of agents"},
		"unknown scenario": {"SCENARIO=peace", `unknown scenario "peace"`},
	} {
		t.Run(name, func(t *testing.T) {
			tmp := t.TempDir()
			p := makeDemo(t, tmp, fmt.Sprintf("PORT=%d", proc.FreePort(t)), c.variable)
			if code := p.Wait(t); code != 2 { // make's exit code for a failed recipe
				t.Errorf("exit code %d, want 2", code)
			}
			if !strings.Contains(p.Stderr.Text(), c.message) {
				t.Errorf("stderr doesn't contain %q:\n%s", c.message, p.Stderr.Text())
			}
			making.NothingLeft(t, p, tmp)
		})
	}
}
