// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/processtest"
)

// found returns the only directory that a search of another finder finds.
func (m *machine) found() *container {
	m.t.Helper()
	all, err := Processes{Proc: m.host.Proc}.Finder(DefaultIdentifyBy).Find(time.Now())
	if err != nil || len(all) != 1 {
		m.t.Fatalf("found %v, error %v", all, err)
	}
	for _, l := range all {
		if c, ok := l.(*container); ok {
			return c
		}
	}
	m.t.Fatal("the directory isn't one in a container")
	return nil
}

// NIXL leaves the rings of exited agents, and a node collects thousands.
func TestOneScanIsEnoughForManyRings(t *testing.T) {
	x := newMachine(t, DefaultIdentifyBy)
	dir := filepath.Join(t.TempDir(), "shm")
	_, env := x.agentIn(dir, "agent-0")
	x.host.Start(processtest.Process{PID: 10, Namespace: "mnt:[10]", Cgroup: processtest.InPod(uid1, container1), Env: env, Maps: dir + "/agent-0"})
	c := x.found()
	scanned := make(chan struct{}, 1)
	find := func(name string, since time.Time) (pid int, found, decided bool) {
		one, found, _, decided := c.mapped.find(c.list(), files.ID{}, filepath.Join(dir, name), since, func() { scanned <- struct{}{} })
		return one.pid, found, decided
	}
	opened := time.Now()
	for i := range 300 {
		if _, _, decided := find(fmt.Sprint("agent-", i), opened); i == 0 && decided {
			t.Fatal("decided before a scan")
		}
	}
	<-scanned
	for i := range 300 {
		if pid, found, decided := find(fmt.Sprint("agent-", i), opened); !decided || found != (i == 0) || found && pid != 10 {
			t.Errorf("agent %d: process %d, found %v, decided %v", i, pid, found, decided)
		}
	}
	// The scan may have missed the process of a ring that is newer.
	x.host.Start(processtest.Process{PID: 11, Namespace: "mnt:[10]", Cgroup: processtest.InPod(uid1, container1), Env: env, Maps: dir + "/new"})
	opened = time.Now()
	if _, _, decided := find("new", opened); decided {
		t.Error("decided before a scan of the new ring's process")
	}
	<-scanned
	pid, found, _ := find("new", opened)
	if p, ok := c.processOf(c.list(), pid); !found || !ok || p.PID != 11 {
		t.Errorf("new agent: process %+v, found %v", p, found)
	}
}

// A container can have so many mappings that reading them takes long.
func TestRingIsDrainedWhileItsProcessIsSought(t *testing.T) {
	x := newMachine(t, DefaultIdentifyBy)
	dir := filepath.Join(t.TempDir(), "shm")
	must.OK(t, os.MkdirAll(dir, 0o750))
	env := []string{"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR=" + dir, "LOCAL_RANK=1"}
	x.host.Start(processtest.Process{PID: 10, Namespace: "mnt:[10]", Cgroup: processtest.InPod(uid1, container1), Env: env, Maps: dir + "/decode"})
	x.look()
	finder, ok := x.watcher.cfg.Finder.(*processes)
	if !ok {
		t.Fatalf("the finder is a %T", x.watcher.cfg.Finder)
	}
	for _, l := range finder.lastDirs {
		l.mapped.pacer.mu.Lock() // a scan for another directory takes long
		defer l.mapped.pacer.mu.Unlock()
	}
	w, _ := x.agentIn(dir, "decode")
	push(t, w, 5)
	for _, d := range x.watcher.directories(false) {
		d.Refresh(func() {})
	}
	m := await(x.owner, func(drain.Opened) bool { return true })
	if n := x.owner.drain()["decode"]; n != 5 || !m.Agent.Unattributed {
		t.Errorf("%d events of %+v", n, m.Agent)
	}
}

func TestStopCancelsTheSearchForAProcess(t *testing.T) {
	x := newMachine(t, DefaultIdentifyBy)
	dir := filepath.Join(t.TempDir(), "shm")
	_, env := x.agentIn(dir, "agent")
	x.host.Start(processtest.Process{PID: 10, Namespace: "mnt:[10]", Cgroup: processtest.InPod(uid1, container1), Env: env, Maps: dir + "/agent"})
	c := x.found()
	c.mapped.pacer.began, c.mapped.pacer.ended = time.Now().Add(-time.Hour), time.Now() // the next scan is due in 20 hours
	find := func() bool {
		_, _, _, decided := c.mapped.find(c.list(), files.ID{}, filepath.Join(dir, "agent"), time.Now(), func() { t.Error("scanned") })
		return decided
	}
	if find() {
		t.Error("decided before a scan")
	}
	c.finder.Stop()
	must.EventuallyTrue(t, "end of the search", func() bool {
		c.mapped.mu.Lock()
		defer c.mapped.mu.Unlock()
		return c.mapped.began.IsZero()
	})
	if _, err := c.finder.Find(time.Now()); err == nil {
		t.Error("searched after Stop")
	}
}
