// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestMain(m *testing.M) {
	Main() // doesn't return in an agent's process
	os.Exit(m.Run())
}

func begin(t *testing.T, l ringbuf.Layout) *Life {
	t.Helper()
	dir := t.TempDir()
	life := Launch(t, Config{
		Path: filepath.Join(dir, "agent"), Journal: filepath.Join(dir, "journal"),
		Layout: l, Capacity: 1 << 16, RunInterval: time.Millisecond, Rate: 20000, Seed: 1,
	})
	life.AwaitStart(t)
	return life
}

// awaitEvents waits until n events are in the ring.
func awaitEvents(t *testing.T, l *Life, n uint64) {
	t.Helper()
	must.Eventually(t, func() string {
		if ringtest.ReadHeader(t, l.Path).WritePos < n {
			return "too few events"
		}
		return ""
	})
}

// Without a reader, all written events are still in the ring. The account from journal and ring
// must equal them.
func TestAccountEqualsTheEventsInTheRing(t *testing.T) {
	for _, layout := range ringbuf.Layouts() {
		for name, end := range map[string]func(*Life){
			"killed":  func(l *Life) { l.Kill(t) },
			"stopped": func(l *Life) { l.Stop(t, syscall.SIGTERM) },
			"frozen":  func(l *Life) { l.Freeze(t) },
		} {
			t.Run(layout.String()+" "+name, func(t *testing.T) {
				l := begin(t, layout)
				awaitEvents(t, l, 2000)
				end(l)
				account := l.Account(t)
				if !maps.Equal(account.Written, account.Unread) || account.Written.Sum() < 2000 {
					t.Errorf("written: %v\nin the ring: %v", account.Written, account.Unread)
				}
			})
		}
	}
}

func TestAgentKilledDuringStartHasWrittenNothing(t *testing.T) {
	dir := t.TempDir()
	for n := range 20 {
		l := Launch(t, Config{
			Path: filepath.Join(dir, "agent"), Journal: filepath.Join(dir, "journal-"+string(rune('a'+n))),
			Layout: ringbuf.V4, Capacity: 64, RunInterval: time.Second, Seed: 1,
		})
		l.Kill(t)
		if n := l.Account(t).Written.Sum(); n != 0 {
			t.Errorf("%d events were written before the first flush", n)
		}
	}
}
