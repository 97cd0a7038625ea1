// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/processtest"
)

// cgroup creates the cgroup of a container with a process.
func (m *machine) cgroup(path string, pids ...int) string {
	m.t.Helper()
	dir := filepath.Join(m.cgroups, path)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		m.t.Fatal(err)
	}
	list := ""
	for _, pid := range pids {
		list += fmt.Sprintln(pid)
	}
	touch(m.t, filepath.Join(dir, "cgroup.procs"), list)
	return dir
}

// The next search is an hour later.
func TestAgentInNewContainerIsFoundAtOnce(t *testing.T) {
	x := newMachine(t, DefaultIdentifyBy)
	x.look()
	dir := filepath.Join(t.TempDir(), "shm")
	cgroup := processtest.InPod(uid1, container1)
	x.cgroup(cgroup, 10) // the runtime creates the cgroup before it starts the process
	x.host.Start(processtest.Process{
		PID: 10, Namespace: "mnt:[10]", Cgroup: cgroup,
		Env: []string{"NIXL_TELEMETRY_ENABLE=y", "NIXL_TELEMETRY_DIR=" + dir}, Maps: dir + "/decode",
	})
	must.EventuallyTrue(t, "directory of the process", func() bool { return len(x.watcher.directories(false)) > 0 })
	x.agentIn(dir, "decode") // is found by another walk
	m := await(x.owner, func(drain.Opened) bool { return true })
	if want := "pod " + uid1 + " " + dir + "/decode"; m.Agent.ID != want || m.Agent.Holder.Container != container1 {
		t.Errorf("opened %+v, want %s", m.Agent, want)
	}
}

func TestOnlyCgroupsAboveContainersOfPodsAreWatched(t *testing.T) {
	x := newMachine(t, DefaultIdentifyBy)
	old := x.cgroup(processtest.InPod(uid1, container1))
	x.cgroup(filepath.Join(processtest.InPod(uid1, container1), "inner"))
	stopped := make(chan struct{})
	defer close(stopped)
	c, err := watchCgroups(x.cgroups, stopped)
	must.OK(t, err)
	list := c.files.WatchList()
	if slices.Contains(list, old) || !slices.Contains(list, filepath.Dir(old)) {
		t.Errorf("watches %v", list)
	}
	fresh := x.cgroup(processtest.InPod(uid1, container2), 20, 21)
	<-c.news
	if pids := c.processes(); !slices.Equal(pids, []int{20, 21}) {
		t.Errorf("processes %v in %s", pids, fresh)
	}
	if !c.expire(time.Now().Add(freshFor + time.Second)) {
		t.Error("a cgroup stays new")
	}
}

func TestNumberOfNewCgroupsIsLimited(t *testing.T) {
	c := &cgroups{}
	for i := range 10 * maxFresh {
		c.add(fmt.Sprint(i))
	}
	if len(c.fresh) != maxFresh || c.fresh[maxFresh-1].path != fmt.Sprint(10*maxFresh-1) {
		t.Errorf("%d cgroups", len(c.fresh))
	}
}

func TestMissingCgroupsAreReported(t *testing.T) {
	host := processtest.New(t)
	x := newPods(t, func(c *WatcherConfig) {
		c.Finder = Processes{Proc: host.Proc, Cgroups: "/nonexistent"}.Finder(DefaultIdentifyBy)
	})
	x.look()
	if reported := x.noticesFrom(notice.NotifyOff); len(reported) != 1 {
		t.Errorf("reported %v", reported)
	}
}
