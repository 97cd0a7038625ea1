// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containers

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// identityConfiguration is the configuration of a Collector with more keys of the receiver.
func identityConfiguration(keys string) string {
	return fmt.Sprintf(`
extensions: {file_storage: {directory: /out/storage, create_directory: true}}
receivers:
  nixl_shm:
    discovery: {processes: {interval: 1s}}
    storage: file_storage
    metrics: {nixl.events: {enabled: true}}
    resource: {host.name: node} # not the container of the Collector
    initial_delay: 0s
    collection_interval: 100ms
    %s
exporters:
  file: {path: /out/metrics.json, flush_interval: 20ms, append: true}
service:
  extensions: [file_storage]
  telemetry: {metrics: {level: none}}
  pipelines: {metrics: {receivers: [nixl_shm], exporters: [file]}}
`, keys)
}

const (
	inShm        = "--env=NIXL_TELEMETRY_DIR=/dev/shm"
	ofContainers = "resource_attributes: {container.id: {enabled: true}, process.pid: {enabled: true}}"
)

// The ranks of an engine, in the forms that engines have. A name is random, as in vLLM.
var (
	launched = []string{"-ranks=2", "-name="}                                                          // LOCAL_RANK, as with torchrun
	spawned  = []string{"-ranks=2", "-name=", "-title=sglang::scheduler_TP%d"}                         // the engine still has its environment
	forked   = []string{"-ranks=2", "-name=", "-title=VLLM::Worker_TP%d", "-parent=VLLM::EngineCore"}  // nobody has
	imports  = []string{"-ranks=2", "-name=", "-title=VLLM::Worker_DP1_PP0_TP%d_EP%d", "-wait=1500ms"} // the ranks have theirs for a while
)

// What identifies the ranks: the parts of the title, if there is more than TP.
var (
	ranks    = []string{"0", "1"}
	parallel = []string{"DP1_PP0_TP0", "DP1_PP0_TP1"}
	none     = []string{""} // an agent that is no rank
)

// Several containers mount one directory, in one pod or in several. The Collector knows the directory from the
// first agent when the others start.
func TestAgentsInASharedDirectoryBelongToTheirOwnProcesses(t *testing.T) {
	c := configured(t, identityConfiguration(ofContainers))
	c.agent = []string{"k8s.pod.uid", "service.name", "nixl.local_rank"}
	dir := sharedDirectory(t)
	list := []struct {
		pod     int
		service string // OTEL_SERVICE_NAME
		args    []string
		shown   string   // service.name; nobody has the environment of forked ranks
		ranks   []string // nixl.local_rank
	}{
		{1, "first", []string{"-name=first"}, "first", none},
		{2, "prefill", []string{"-name=second"}, "prefill", none},
		{3, "decode", launched, "decode", ranks},
		{3, "encode", spawned, "encode", ranks},
		{4, "decode", imports, "decode", parallel},
		{5, "decode", forked, "nixl", ranks},
	}
	var agents []*agent
	var want []string
	for i, a := range list {
		agents = append(agents, start(t, spec{pod(a.pod), []string{enable, inShm, "--volume=" + dir + ":/dev/shm", "--env=OTEL_SERVICE_NAME=" + a.service}, a.args}))
		if i == 0 {
			agents[0].interval()
			c.await(strings.Join([]string{pod(1), "first", ""}, " "), agents[0].written)
		}
	}
	for range 2 {
		for _, a := range agents {
			a.interval()
		}
		want = want[:0]
		for i, a := range list {
			for _, rank := range a.ranks {
				name := strings.Join([]string{pod(a.pod), a.shown, rank}, " ")
				want = append(want, name)
				agents[i].owns(c.await(name, agents[i].written/len(a.ranks)))
			}
		}
		c.stop()
		c.start(t)
	}
	slices.Sort(want)
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(c.sums))); d != "" {
		t.Errorf("agents (-want +got):\n%s", d)
	}
}

// sharedDirectory returns a directory in memory that every user can write to.
func sharedDirectory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "shared") //nolint:usetesting // rings are on tmpfs, as in containers
	must.OK(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must.OK(t, os.Chmod(dir, 0o777)) // ignore the umask
	return dir
}

// owns checks that the container and the process of a resource are those of the agent.
func (a *agent) owns(resource map[string]string) {
	a.t.Helper()
	cgroup, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", a.pid()))
	must.OK(a.t, err)
	if id := resource["container.id"]; id == "" || !strings.Contains(string(cgroup), id) {
		a.t.Errorf("the container of %v isn't in\n%s", resource, cgroup)
	}
	stat, err := os.ReadFile(filepath.Join("/proc", resource["process.pid"], "stat"))
	must.OK(a.t, err)
	parent := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))[1]
	if first := strconv.Itoa(a.pid()); resource["process.pid"] != first && parent != first {
		a.t.Errorf("the process of %v is neither %s nor its child", resource, first)
	}
}

// Docker in a pod, jobs of Slurm in a pod, or kind: a container in a container has its own /dev/shm.
func TestAgentsWithOnePathInNestedContainersAreTwo(t *testing.T) {
	c := configured(t, identityConfiguration(ofContainers))
	c.agent = []string{"k8s.pod.uid", "container.id"}
	outer := "--cgroup-parent=" + shared.cgroup() + "/kubepods/burstable/pod" + pod(1) + "/" + strings.Repeat("a", 64) + "/docker"
	one := spec{pod(1), []string{enable, inShm, outer}, nil}
	agents := startAll(t, one, one)
	for range 2 {
		for _, a := range agents {
			a.interval()
			cgroup, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", a.pid()))
			must.OK(t, err)
			_, id, _ := strings.Cut(strings.TrimSpace(string(cgroup[strings.LastIndex(string(cgroup), "/docker/"):])), "libpod-")
			a.owns(c.await(pod(1)+" "+id, a.written))
		}
		c.stop()
		c.start(t)
	}
	if len(c.sums) != 2 {
		t.Errorf("the agents are %q, want 2", slices.Sorted(maps.Keys(c.sums)))
	}
}

// With the rank as identity, engines with random names continue their series when they, or the Collector, restart.
func TestRanksOfEnginesContinueTheirSeries(t *testing.T) {
	for name, engine := range map[string]struct {
		args    []string
		service string
		ranks   []string
	}{
		"launched": {launched, "decode", ranks}, "spawned": {spawned, "decode", ranks},
		"imports": {imports, "decode", parallel}, "forked": {forked, "nixl", ranks},
	} {
		t.Run(name, func(t *testing.T) {
			c := configured(t, identityConfiguration("identify_by: [pod, rank]"))
			c.agent = []string{"k8s.pod.uid", "service.name", "nixl.local_rank"}
			ended := 0
			for range 3 {
				a := start(t, spec{pod(1), []string{enable, inShm, "--env=OTEL_SERVICE_NAME=decode"}, engine.args})
				await := func() {
					t.Helper()
					for _, rank := range engine.ranks {
						c.await(strings.Join([]string{pod(1), engine.service, rank}, " "), (ended+a.written)/2)
					}
				}
				a.interval()
				await()
				c.stop()
				a.interval()
				c.start(t)
				await()
				stopAll(a)
				await()
				ended += a.written
			}
			if len(c.sums) != 2 {
				t.Errorf("the agents are %q, want 2", slices.Sorted(maps.Keys(c.sums)))
			}
			for agent, series := range c.series {
				if len(series) != 1 {
					t.Errorf("%s has %d series, want 1", agent, len(series))
				}
			}
		})
	}
}
