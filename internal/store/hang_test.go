// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package store

import (
	"sync"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/discover"
	"github.com/nixl-otel/nixl-otel/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/storetest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Only the first collection waits, for ReadTimeout. Once the file system responds, the
// agents are reported again.
func TestHungFileSystemDelaysOnlyOneCollection(t *testing.T) {
	x := newFixture(t)
	work(storetest.Create(t, x.dir, storetest.Config{}), 1)
	answers := make(chan struct{})
	answer := sync.OnceFunc(func() { close(answers) })
	defer answer()
	r := x.read(func(c *Config) {
		c.ReadTimeout = 50 * time.Millisecond
		c.Dirs = func() []func() (*ringbuf.Dir, error) {
			return []func() (*ringbuf.Dir, error){func() (*ringbuf.Dir, error) {
				<-answers
				return ringbuf.OpenDir(x.dir, ".")
			}}
		}
	})
	began := time.Now()
	if agents := r.Collect(true).Wait(t.Context()); len(agents) != 0 {
		t.Errorf("agents = %v", agents)
	}
	if took := time.Since(began); took < 50*time.Millisecond {
		t.Errorf("the first collection took %v, want ReadTimeout at least", took)
	}
	if c := r.Collect(true); c != nil {
		t.Error("another collection started while the file system hangs")
	}
	x.advance(discover.HangTimeout)
	if err := r.State().Missing; err == nil {
		t.Error("the state doesn't report the hang")
	}
	answer()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(waitLimit); ; <-look.C {
		if c := r.Collect(true); c != nil {
			if agents := c.Wait(t.Context()); len(agents) == 1 {
				check(t, map[string]drain.Snapshot{"agent": agents[0]}, map[string]sums{"agent": transfers(1, drain.UpYes)})
				return
			}
		}
		if time.Now().After(end) {
			t.Fatal("the agent wasn't reported again")
		}
	}
}
