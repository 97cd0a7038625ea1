// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package web

import (
	"net/http"
	"regexp"
	"syscall"
	"testing"

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
