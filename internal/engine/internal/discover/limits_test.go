// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// overLimit returns the number of paths that are refused because of a limit of their container.
func (p *pods) overLimit() (n int) {
	for _, r := range p.watcher.State().Refused {
		if r.Reason == "budget" {
			n++
		}
	}
	return n
}

func TestDirectoriesBeyondTheLimitOfAPodAreNotWatched(t *testing.T) {
	x := newPods(t, nil)
	for i := range maxDirectories + 3 {
		x.agent("uid-1", fmt.Sprint("volume-", i), "agent")
	}
	x.agent("uid-2", "shm", "decode")
	x.look()
	opened := make(map[string]int)
	for _, a := range x.opened() {
		opened[a.Holder.Pod]++
	}
	x.advance(time.Minute)
	x.look()
	n := x.watcher.State().Directories["kubelet"]
	if got, want := fmt.Sprint(opened, x.overLimit(), n), "map[uid-1:16 uid-2:1] 3 17"; got != want {
		t.Errorf("opened, refused and watched are %s, want %s", got, want)
	}
	if reported := x.noticesOf(notice.BudgetReached); len(reported) != 1 || !strings.Contains(reported[0].String(), "pod uid-1 has more than 16 directories") {
		t.Errorf("reported %v", reported)
	}
}

// A file beyond the limit costs neither memory nor a log line of its own. The directories of a container share the limit.
func TestFilesBeyondTheLimitOfAContainerAreNotRemembered(t *testing.T) {
	x := newPods(t, nil)
	const most = 1 << 12
	agent := x.agent("uid-1", "shm", "decode")
	first := filepath.Dir(agent.Path())
	second := filepath.Dir(x.agent("uid-1", "other", "prefill").Path())
	x.look()
	for i := range most {
		touch(t, filepath.Join(first, fmt.Sprint("file-", i)), "no ring")
	}
	x.look()
	for i := range most/2 + 10 {
		touch(t, filepath.Join(second, fmt.Sprint("file-", i)), "no ring")
	}
	records := func() int64 {
		x.look()
		x.look()
		return x.watcher.directories()[0].paths.Load()
	}
	if n := records(); n != most || x.overLimit() != 2 || len(x.noticesOf(notice.DirectoryCut)) != 2 {
		t.Errorf("%d records, want %d; %d paths refused, notices %v", n, most, x.overLimit(), x.noticesOf(notice.DirectoryCut))
	}
	must.OK(t, os.RemoveAll(first)) // a ring stays open
	if n, want := records(), int64(most/2+12); n != want || x.overLimit() != 0 {
		t.Errorf("without one of the directories, %d records, want %d; %d paths refused", n, want, x.overLimit())
	}
	must.OK(t, agent.Close())
	must.Eventually(t, func() string {
		x.advance(time.Second)
		x.owner.drain()
		if n, want := records(), int64(most/2+11); n != want {
			return fmt.Sprintf("without its ring, %d records, want %d", n, want)
		}
		return ""
	})
}

// A process has a limited number of mappings, so a ring is opened once the owner has answered about the one before. An
// owner that is slow is no sign that the file system hangs.
func TestWalkWaitsForTheOwnerToAnswer(t *testing.T) {
	x := newFixture(t)
	d := x.directory(nil)
	offers := make(chan drain.Offer, 10)
	d.send = func(m drain.Message) {
		if m, ok := m.(drain.Offer); ok {
			offers <- m
		}
	}
	const rings = 3
	for i := range rings {
		x.ring(fmt.Sprint("agent-", i), ringbuf.V4, 8)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.do(d.refresh)
	}()
	for range rings {
		m := <-offers
		x.advance(hangTimeout)
		if s := d.state(); len(offers) != 0 || len(s.Missing) != 0 {
			t.Errorf("%d further offers, state %+v", len(offers), s)
		}
		d.Answer(m.Agent, m.Reader, drain.ErrLimit)
	}
	<-done
	if s := d.state(); s.Open != 0 || len(s.Refused) != rings || d.walkRest.After(x.clock()) {
		t.Errorf("state is %+v, the next walk is after %v", s, d.walkRest.Sub(x.clock()))
	}
}
