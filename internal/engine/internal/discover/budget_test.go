// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/processtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// limited returns a change of a configuration that sets a budget.
func limited(change func(*Budget)) func(*WatcherConfig) {
	return func(c *WatcherConfig) { change(&c.Rings.Budget) }
}

// overBudget returns the paths that are refused because of a budget.
func (p *pods) overBudget() (paths []string) {
	for path, r := range p.watcher.State().Refused {
		if r.Reason == "budget" {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

func TestRingsBeyondTheBudgetOfAPodAreRefused(t *testing.T) {
	x := newPods(t, limited(func(b *Budget) { b.Rings = 2 }))
	for i := range 5 {
		x.agent("uid-1", "shm", fmt.Sprint("agent-", i))
	}
	x.look()
	x.agent("uid-2", "shm", "decode")
	x.look()
	opened := make(map[string]int)
	for _, a := range x.opened() {
		opened[a.Holder.Pod]++
	}
	if opened["uid-1"] != 2 || opened["uid-2"] != 1 {
		t.Errorf("opened %v", opened)
	}
	if refused := x.overBudget(); len(refused) != 3 {
		t.Errorf("refused %v", refused)
	}
	reported := x.noticesOf(notice.BudgetReached)
	if len(reported) != 1 || reported[0].Pod != "uid-1" || !strings.Contains(reported[0].String(), "pod uid-1 uses its whole budget of 2 rings") ||
		!strings.Contains(reported[0].String(), "uses its whole budget") {
		t.Errorf("reported %v", reported)
	}
}

// An agent that exits makes room for another one.
func TestBudgetIsFreedByRetiredAgents(t *testing.T) {
	x := newPods(t, limited(func(b *Budget) { b.Rings = 1 }))
	w := x.agent("uid-1", "shm", "first")
	x.look()
	x.agent("uid-1", "shm", "second")
	x.look()
	if refused := x.overBudget(); len(refused) != 1 {
		t.Fatalf("refused %v", refused)
	}
	remove(t, w.Path())
	x.look()
	x.owner.retire(w.Path())
	x.look() // waits until the agent is retired; otherwise, the other ring could be tried before that
	x.advance(ProbeInterval)
	x.look()
	if refused := x.overBudget(); len(refused) != 0 || len(x.opened()) != 2 {
		t.Errorf("refused %v", refused)
	}
}

func TestLimitOnAllRingsNamesTheHolderOfMost(t *testing.T) {
	x := newPods(t, func(c *WatcherConfig) { c.Rings = NewRings(3) })
	for i := range 3 {
		x.agent("uid-1", "shm", fmt.Sprint("agent-", i))
	}
	x.look()
	w := x.agent("uid-2", "shm", "decode")
	x.look()
	if err := x.watcher.State().Refused[w.Path()].Err; err == nil || !strings.HasSuffix(err.Error(), "most of them are in pod uid-1") {
		t.Errorf("refused: %v", err)
	}
}

func TestRingsAreMappedUpToTheBudget(t *testing.T) {
	x := newPods(t, limited(func(b *Budget) { b.MappedBytes = ringbuf.V4.FileSize(8) * 2 }))
	for i := range 3 {
		x.agent("uid-1", "shm", fmt.Sprint("agent-", i))
	}
	x.look()
	if refused := x.overBudget(); len(refused) != 1 || len(x.opened()) != 2 {
		t.Errorf("refused %v", refused)
	}
}

// A file that exceeds the budget costs neither memory nor a log line.
func TestFilesBeyondTheBudgetAreNotRecorded(t *testing.T) {
	x := newPods(t, limited(func(b *Budget) { b.Files = 100 }))
	volume := filepath.Dir(x.agent("uid-1", "shm", "decode").Path())
	x.look()
	for i := range 1000 {
		touch(t, filepath.Join(volume, fmt.Sprint("file-", i)), "no ring")
	}
	must.OK(t, os.Mkdir(filepath.Join(filepath.Dir(volume), "more"), 0o750))
	for i := range 10 {
		touch(t, filepath.Join(filepath.Dir(volume), "more", fmt.Sprint("file-", i)), "no ring")
	}
	x.look()
	x.look()
	rings := x.watcher.cfg.Rings
	rings.mu.Lock()
	records := rings.accounts[drain.Holder{Pod: "uid-1"}].used[someFiles]
	rings.mu.Unlock()
	if records != 100 {
		t.Errorf("%d records, want 100", records)
	}
	if refused := x.overBudget(); !slices.Contains(refused, volume) {
		t.Errorf("refused %v, want %s", refused, volume)
	}
	reported := x.noticesOf(notice.DirectoryCut)
	if len(reported) == 0 || !strings.Contains(reported[0].String(), "pod uid-1 uses its whole budget of 100 files") {
		t.Errorf("reported %v", reported)
	}
}

func TestDirectoriesBeyondTheBudgetOfAContainerAreNotWatched(t *testing.T) {
	host := processtest.New(t)
	x := newPods(t, func(c *WatcherConfig) {
		c.Rings.Budget.Directories = 3
		c.Finder = Processes{Proc: host.Proc}.Finder(DefaultIdentifyBy)
	})
	m := &machine{pods: x, host: host}
	tmp := t.TempDir()
	start := func(pid int, pod, container, dir string) {
		_, env := m.agentIn(filepath.Join(tmp, dir), "agent")
		host.Start(processtest.Process{PID: pid, Namespace: fmt.Sprintf("mnt:[%d]", pid), Cgroup: processtest.InPod(pod, container), Env: env})
	}
	for i := range 10 {
		start(10+i, uid1, container1, fmt.Sprint("dir-", i))
	}
	x.look()
	start(50, uid2, container2, "other")
	x.look()
	opened := make(map[string]int)
	for _, a := range x.opened() {
		opened[a.Holder.Container]++
	}
	if opened[container1] != 3 || opened[container2] != 1 {
		t.Errorf("opened %v", opened)
	}
	if refused := x.overBudget(); len(refused) != 7 {
		t.Errorf("refused %v", refused)
	}
	for i := range 10 {
		host.Exit(10 + i)
	}
	start(60, uid1, container1, "new")
	x.look()
	for len(x.watcher.directories(true)) > 2 { // until the others are closed
		x.owner.returnRings()
		x.look()
	}
	x.look()
	if refused := x.overBudget(); len(refused) != 0 {
		t.Errorf("refused %v", refused)
	}
}

// The agents of a host share its directories.
func TestConfiguredDirectoriesHaveTheLimitOnAllRings(t *testing.T) {
	r := NewRings(10_000)
	shared := drain.Holder{Place: "/run/nixl", Shared: true}
	for what, want := range map[resource]int64{
		someRings: 10_000, someFiles: 65_536, someDirectories: 1024, someBytes: 1 << 30,
	} {
		if got := r.limitOf(shared, what); got != want {
			t.Errorf("the limit on %v is %d, want %d", what, got, want)
		}
	}
}

// Six processes of a pod can create any number of files.
func TestMemoryForIgnoredFilesIsBounded(t *testing.T) {
	x := newPods(t, limited(func(b *Budget) { b.Files = 500 }))
	for dir := range 6 {
		volume := filepath.Dir(x.agent("uid-1", fmt.Sprint("shm-", dir), "agent").Path())
		for i := range 500 {
			f, err := os.Create(filepath.Join(volume, fmt.Sprint("sparse-", i)))
			must.OK(t, err)
			must.OK(t, f.Truncate(1<<20))
			_ = f.Close()
		}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	x.look()
	x.look()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if used := int64(after.HeapAlloc) - int64(before.HeapAlloc); used > 2<<20 {
		t.Errorf("%d MB are used for files, want at most 2", used>>20)
	}
}
