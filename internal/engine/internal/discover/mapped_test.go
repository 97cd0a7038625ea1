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

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/process"
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
	old := time.Now().Add(-time.Hour)
	for i := range 300 {
		name := filepath.Join(dir, fmt.Sprint("agent-", i))
		touch(t, name, "")
		must.OK(t, os.Chtimes(name, old, old))
	}
	var scanned time.Time
	for i := range 300 {
		p, found := c.processOf(c.list(), files.ID{}, fmt.Sprint("agent-", i))
		if found != (i == 0) || found && p.PID != 10 {
			t.Errorf("agent %d: process %d, %v", i, p.PID, found)
		}
		if i == 0 {
			scanned = c.mapped.at
		}
	}
	if again := c.mapped.at; again.Sub(scanned) > 0 && again.Sub(scanned) < scanLife {
		t.Errorf("scanned again after %v", again.Sub(scanned))
	}
	// A new ring belongs to a process that the scan may have missed.
	x.host.Start(processtest.Process{PID: 11, Namespace: "mnt:[10]", Cgroup: processtest.InPod(uid1, container1), Env: env, Maps: dir + "/new"})
	touch(t, filepath.Join(dir, "new"), "")
	if p, found := c.processOf(c.list(), files.ID{}, "new"); !found || p.PID != 11 {
		t.Errorf("new agent: process %d, %v", p.PID, found)
	}
}

func TestStopCancelsTheSearchForAProcess(t *testing.T) {
	x := newMachine(t, DefaultIdentifyBy)
	dir := filepath.Join(t.TempDir(), "shm")
	_, env := x.agentIn(dir, "agent")
	x.host.Start(processtest.Process{PID: 10, Namespace: "mnt:[10]", Cgroup: processtest.InPod(uid1, container1), Env: env, Maps: dir + "/agent"})
	c := x.found()
	c.mapped.pacer.began, c.mapped.pacer.ended = time.Now().Add(-time.Hour), time.Now() // the next scan is due in 20 hours
	done := make(chan bool)
	go func() {
		_, found := c.processOf([]process.Process{{PID: 10, MountNS: "mnt:[10] /"}}, files.ID{}, "agent")
		done <- found
	}()
	c.finder.Stop()
	if <-done {
		t.Error("found a process after Stop")
	}
	if _, err := c.finder.Find(time.Now()); err == nil {
		t.Error("searched after Stop")
	}
}
